/* The least that a stop hook can do where there is no loop: read the event, find nothing.
 *
 * no_loop MISSING [LOG]
 *   MISSING  a file that is not there
 *   LOG      gets one line, as in a project that uses ralph
 *
 * Built with `cc -O2 -static`; no buffered I/O, no allocation. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char buffer[65536];

int main(int argc, char **argv) {
    static const char line[] =
        "2026-01-31T22:00:00.000Z event=Stop decision=allow code=loop.none session=11111111-2222-4333-8444-555555555555\n";
    while (read(0, buffer, sizeof buffer) > 0) {
    }
    if (argc < 2 || open(argv[1], O_RDONLY | O_CLOEXEC) >= 0)
        return 1;
    if (argc > 2) {
        int log = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if (log < 0 || write(log, line, sizeof line - 1) < 0)
            return 1;
        close(log);
    }
    return 0;
}
