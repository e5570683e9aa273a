#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace tools {

/// What is wrong with a command line, in words that name what was typed and what is valid.
std::string complaint_of(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tools
