#pragma once

namespace feedrate {

/// First in main: opens /dev/null where stdin, stdout or stderr is closed, so that no file or socket gets its number,
/// and makes of a reader that is gone an error, where it would end the process.
void open_standard_streams();

/// Last in main: the exit code, or 1 in place of 0 where not all of stdout could be written (which it says, unless the
/// reader wanted no more).
int exit_code_after_output(int code);

}  // namespace feedrate
