/* The least that a stop hook can do where a loop goes on: read the event and the state, replace the state, append a line to a journal, answer.
 *
 * loop HOW STATE BESIDE JOURNAL [LOG SEAL PREVIOUS]
 *   HOW      rename         write BESIDE, rename it over STATE
 *            rename-sync    the same, and BESIDE is on the disk before it gets the name
 *            exchange-sync  what ralph does: overwrite BESIDE, sync, exchange the two names
 *   LOG      gets a line too
 *   SEAL     gets a copy of the journal's line, out of the agent's reach: overwrite PREVIOUS, exchange the two names
 *
 * Built with `cc -O2 -static`; no buffered I/O, no allocation. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JOURNAL_LINE = 1860, LOG_LINE = 140, ANSWER = 950 };

static char event[65536], state[65536], line[JOURNAL_LINE];

static int append(const char *path, size_t length) {
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    line[length - 1] = '\n';
    int failed = file < 0 || write(file, line, length) != (ssize_t)length;
    line[length - 1] = 'x';
    close(file);
    return failed;
}

static int seal(const char *path, const char *previous) {
    int file = open(previous, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int failed = file < 0 || write(file, line, JOURNAL_LINE) != JOURNAL_LINE;
    close(file);
    return failed || renameat2(AT_FDCWD, previous, AT_FDCWD, path, RENAME_EXCHANGE) != 0;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    const char *how = argv[1], *path = argv[2], *beside = argv[3];
    int exchange = strcmp(how, "exchange-sync") == 0, sync = strcmp(how, "rename") != 0;
    memset(line, 'x', sizeof line);

    while (read(0, event, sizeof event) > 0) {
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, state, sizeof state);
    if (length < 0)
        return 1;
    close(file);

    file = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC | (exchange ? 0 : O_TRUNC), 0644);
    if (file < 0 || write(file, state, length) != length)
        return 1;
    struct stat now;
    if (exchange && (fstat(file, &now) != 0 || (now.st_size > length && ftruncate(file, length) != 0)))
        return 1;
    if (sync && fdatasync(file) != 0)
        return 1;
    close(file);
    if (exchange ? renameat2(AT_FDCWD, beside, AT_FDCWD, path, RENAME_EXCHANGE) : rename(beside, path))
        return 1;

    if (argc > 7 && seal(argv[6], argv[7]))
        return 1;
    if (append(argv[4], JOURNAL_LINE) || (argc > 5 && append(argv[5], LOG_LINE)))
        return 1;
    line[ANSWER - 1] = '\n';
    return write(1, line, ANSWER) != ANSWER;
}
