#pragma once

/// A name that a shared library shows; it is compiled with all others hidden.
#define FEEDRATE_EXPORT __attribute__((visibility("default")))
