/* Runs a program and prints its peak memory in KB on standard error.
 *
 * peak PROGRAM [ARGUMENT]…
 *
 * A child's peak begins with that of the process that it was split off from, so a small launcher has to stand between the bench and the program. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int status;
    struct rusage usage;
    if (argc < 2)
        return 2;
    pid_t pid = vfork();
    if (pid == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
        return 1;
    dprintf(2, "%ld\n", usage.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
