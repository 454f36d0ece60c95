#pragma once

/// Exports a name from a shared library; all other names are hidden.
#define FEEDRATE_EXPORT __attribute__((visibility("default")))
