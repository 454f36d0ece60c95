#pragma once

namespace feedrate {

/// First call in main. Opens /dev/null for stdin, stdout or stderr if it is closed, so that no file or socket gets its
/// number. Also ignores SIGPIPE and SIGXFSZ, so that a failed write returns an error instead of killing the process.
void open_standard_streams();

/// Last call in main. Returns the exit code, or 1 instead of 0 if stdout could not be written completely. Reports that
/// failure unless the reader has closed the pipe.
int exit_code_after_output(int code);

}  // namespace feedrate
