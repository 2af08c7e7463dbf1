/* Without libFuzzer: runs the target once for each file of the given folders. */
#include "check.h"
#include "target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A size larger than any input worth keeping. */
#define FILE_MAX (64 * 1024)

static void run_file(const char *path) {
    static uint8_t data[FILE_MAX];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t size = fread(data, 1, sizeof(data), file);
    CHECK(ferror(file) == 0 && feof(file) != 0);
    fclose(file);
    fprintf(stderr, "# %s\n", path);
    LLVMFuzzerTestOneInput(data, size);
}

static size_t run_folder(const char *folder) {
    size_t count = 0;
    DIR *listing = opendir(folder);
    CHECK(listing != NULL);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        char path[4096];
        struct stat info;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            run_file(path);
            count++;
        }
    }
    closedir(listing);
    return count;
}

int main(int argc, char **argv) {
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        count += run_folder(argv[i]);
    }
    CHECK(count > 0); /* an empty corpus tests nothing */
    return 0;
}
