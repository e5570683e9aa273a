#pragma once

// A function that the doubles export under its name, as the libraries do whose place they take.
#define DOUBLE_EXPORT extern "C" __attribute__((visibility("default")))
