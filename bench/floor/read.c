/* The least that whoever tells of a journal has to do: reads the whole file into memory and finds its lines.
 *
 * read FILE */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct stat about;
    int file = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0 || fstat(file, &about) != 0)
        return 2;
    char *text = malloc(about.st_size + 1);
    if (!text)
        return 1;
    ssize_t length = 0, n;
    while ((n = read(file, text + length, about.st_size - length)) > 0)
        length += n;
    long lines = 0;
    for (char *at = text; (at = memchr(at, '\n', text + length - at)); at++)
        lines++;
    printf("%ld\n", lines);
    return lines == 0;
}
