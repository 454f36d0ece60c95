"""The experiment `feeding`: what its report says beyond every experiment's."""
