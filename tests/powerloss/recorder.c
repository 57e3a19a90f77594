/* A library for LD_PRELOAD: it writes down what a process does to the files under one folder.

       process ── pwrite, fsync, rename … ──► this library ──► libc
                                                  │
                                                  ├──► the journal: every operation, in order
                                                  └──◄ the control page: where to die, what to refuse

   From the journal alone `disk.py` tells what a power failure after any operation would leave, so one
   run of the program serves for all of them. What the process acknowledges (it writes that to
   standard output) stands in the same journal, so it is known what it had promised by then.

   A write is noted before it is done and a sync after it has returned: whoever reads the journal
   never takes anything for durable that was not. A store into a mapped file is no call at all; so
   each mapping has a copy, and what differs from it is noted before the next operation.

   Environment: RECORDER_ROOT (the folder), _JOURNAL (a file), _CONTROL (a file of 4096 bytes). */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS 65536
#define MAPS 64
#define PATH 1024

/* The control page: the process reads it at every operation, the test may write it at any time. */
struct control {
    uint64_t operations;   /* how many were begun */
    uint64_t kill_at;      /* die before this operation; 0: never */
    uint64_t kill_half;    /* if it is a write, do one half of it first */
    uint64_t write_errno;  /* refuse writes with it; so with the others */
    uint64_t sync_errno;
    uint64_t read_errno;
    uint64_t fail_at;      /* refuse this one operation, */
    uint64_t fail_errno;   /* with this error */
    uint64_t kill_sync;    /* die before the next sync */
    uint64_t fail_read;    /* refuse the read that is so many away; then none */
    uint64_t refused;      /* how many were */
    char only[256];        /* refuse, or die at, only files whose path ends so; empty: all */
};

struct head {
    char kind;
    char pad[3];
    uint32_t path_bytes;
    uint64_t inode;
    uint64_t offset;
    uint64_t data_bytes;
} __attribute__((packed));

struct map { char *address; char *copy; size_t bytes; off_t offset; uint64_t inode; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH];
static size_t root_bytes;
static int journal = -1;
static struct control *control;
static struct control nothing;
static uint64_t inode_of[FDS];
static char *path_of[FDS];
static struct map maps[MAPS];
static int tracing;

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static ssize_t real_write(int fd, const void *data, size_t bytes) {
    REAL(write);
    return real(fd, data, bytes);
}

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("RECORDER_ROOT");
    const char *where = getenv("RECORDER_JOURNAL");
    const char *page = getenv("RECORDER_CONTROL");
    control = &nothing;
    if (!folder || !where || !page) return;
    root_bytes = strlen(folder);
    memcpy(root, folder, root_bytes + 1);
    int fd = open(page, O_RDWR | O_CLOEXEC);
    void *found = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || found == MAP_FAILED) { perror("the control page"); _exit(90); }
    close(fd);
    control = found;
    journal = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (journal < 0) { perror("the journal"); _exit(90); }
    tracing = 1;
}

static int is_ours(const char *path) {
    return !strncmp(path, root, root_bytes) && (path[root_bytes] == '/' || !path[root_bytes]);
}

/* The path as the kernel knows it; a path that is to come, by its folder. 0 if it is not ours. */
static int whole_path(int folder, const char *path, char *whole) {
    char joined[2 * PATH], link[64], parent[2 * PATH];
    if (path[0] == '/') snprintf(joined, sizeof joined, "%s", path);
    else if (folder == AT_FDCWD) {
        if (!getcwd(parent, PATH)) return 0;
        snprintf(joined, sizeof joined, "%s/%s", parent, path);
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t got = readlink(link, parent, PATH - 1);
        if (got < 0) return 0;
        parent[got] = 0;
        snprintf(joined, sizeof joined, "%s/%s", parent, path);
    }
    char *last = strrchr(joined, '/');
    char name[PATH];
    snprintf(name, sizeof name, "%s", last + 1);
    *last = 0;
    char *resolved = realpath(joined[0] ? joined : "/", NULL);
    if (!resolved) return 0;
    snprintf(whole, PATH, "%s/%s", resolved, name);
    free(resolved);
    return is_ours(whole);
}

static void put(char kind, uint64_t inode, uint64_t offset, const char *path, const void *data,
                size_t bytes) {
    struct head head = {kind, {0}, path ? strlen(path) : 0, inode, offset, bytes};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)path, head.path_bytes},
                             {(void *)data, bytes}};
    size_t all = sizeof head + head.path_bytes + bytes;
    if (writev(journal, parts, 3) != (ssize_t)all) _exit(91);
}

/* What was stored into mapped files since somebody looked last. Called with the lock. */
static void note_maps(void) {
    for (int each = 0; each < MAPS; each++) {
        struct map *map = &maps[each];
        if (!map->address || !memcmp(map->address, map->copy, map->bytes)) continue;
        size_t from = 0, to = map->bytes;
        while (map->address[from] == map->copy[from]) from++;
        while (map->address[to - 1] == map->copy[to - 1]) to--;
        memcpy(map->copy + from, map->address + from, to - from);
        put('W', map->inode, map->offset + from, NULL, map->copy + from, to - from);
    }
}

static void note(char kind, uint64_t inode, uint64_t offset, const char *path, const void *data,
                 size_t bytes) {
    pthread_mutex_lock(&lock);
    note_maps();
    put(kind, inode, offset, path, data, bytes);
    pthread_mutex_unlock(&lock);
}

/* Count an operation, and die here if that is wanted. 1: a half of it may be done first. */
static int step(int is_write) {
    uint64_t number = __atomic_add_fetch(&control->operations, 1, __ATOMIC_SEQ_CST);
    if (number != control->kill_at) return 0;
    if (is_write && control->kill_half) return 1;
    _exit(137);
}

static int is_meant(const char *path) {
    size_t ends = strlen(control->only), whole = path ? strlen(path) : 0;
    return !ends || (ends <= whole && !strcmp(path + whole - ends, control->only));
}

static int refuses(uint64_t code, const char *path) {
    if (control->fail_at && control->fail_at == control->operations) code = control->fail_errno;
    else if (!is_meant(path)) return 0;
    if (!code) return 0;
    __atomic_add_fetch(&control->refused, 1, __ATOMIC_SEQ_CST);
    errno = (int)code;
    return 1;
}

static uint64_t traced(int fd) {
    return tracing && fd >= 0 && fd < FDS ? inode_of[fd] : 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static int open_any(int folder, const char *path, int flags, mode_t mode) {
    REAL(openat);
    char whole[PATH];
    if (!tracing || !whole_path(folder, path, whole)) return real(folder, path, flags, mode);
    struct stat found;
    int is_new = fstatat(folder, path, &found, 0) != 0 && (flags & O_CREAT);
    if (is_new) {
        step(0);
        if (refuses(control->write_errno, whole)) return -1;
    }
    int fd = real(folder, path, flags, mode);
    if (fd < 0 || fd >= FDS || fstat(fd, &found)) return fd;
    inode_of[fd] = found.st_ino;
    free(path_of[fd]);
    path_of[fd] = strdup(whole);
    if (is_new) note('C', found.st_ino, 0, whole, NULL, 0);
    else if ((flags & O_TRUNC) && S_ISREG(found.st_mode)) {
        step(0);
        note('T', found.st_ino, 0, whole, NULL, 0);
    } else note('O', found.st_ino, 0, whole, NULL, 0);
    return fd;
}

#define MODE(flags, last) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; va_start(rest, last); mode = va_arg(rest, mode_t); va_end(rest); \
    }
int open(const char *path, int flags, ...) {
    MODE(flags, flags) return open_any(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags, flags) return open_any(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE(flags, flags) return open_any(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags, flags) return open_any(folder, path, flags, mode);
}
int __open_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char *path, int flags) { return open_any(folder, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags) {
    return open_any(folder, path, flags, 0);
}

int close(int fd) {
    REAL(close);
    if (traced(fd)) {
        inode_of[fd] = 0;
        free(path_of[fd]);
        path_of[fd] = NULL;
    }
    return real(fd);
}

static int names_changed(char kind, int one, const char *from, int other, const char *to) {
    char old[PATH], new[PATH];
    struct stat found;
    if (!tracing || !whole_path(one, from, old)) return 1;
    if (kind == 'R' && !whole_path(other, to, new)) return 1;
    if (kind != 'D' && fstatat(one, from, &found, AT_SYMLINK_NOFOLLOW)) return 1;
    step(0);
    if (refuses(control->write_errno, old)) return 0;
    if (kind == 'R') note('R', found.st_ino, 0, old, new, strlen(new));
    else if (kind == 'U') note('U', found.st_ino, 0, old, NULL, 0);
    return 1;
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return names_changed('R', AT_FDCWD, from, AT_FDCWD, to) ? real(from, to) : -1;
}
int renameat(int one, const char *from, int other, const char *to) {
    REAL(renameat);
    return names_changed('R', one, from, other, to) ? real(one, from, other, to) : -1;
}
int unlink(const char *path) {
    REAL(unlink);
    return names_changed('U', AT_FDCWD, path, 0, NULL) ? real(path) : -1;
}
int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    return names_changed('U', folder, path, 0, NULL) ? real(folder, path, flags) : -1;
}
int rmdir(const char *path) {
    REAL(rmdir);
    return names_changed('U', AT_FDCWD, path, 0, NULL) ? real(path) : -1;
}

static int made_folder(int folder, const char *path, int result) {
    char whole[PATH];
    struct stat found;
    if (!result && tracing && whole_path(folder, path, whole) &&
        !fstatat(folder, path, &found, 0))
        note('D', found.st_ino, 0, whole, NULL, 0);
    return result;
}
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    if (!names_changed('D', AT_FDCWD, path, 0, NULL)) return -1;
    return made_folder(AT_FDCWD, path, real(path, mode));
}
int mkdirat(int folder, const char *path, mode_t mode) {
    REAL(mkdirat);
    if (!names_changed('D', folder, path, 0, NULL)) return -1;
    return made_folder(folder, path, real(folder, path, mode));
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* -1: it is refused. Otherwise how many bytes are to be written. */
static ssize_t writing(int fd, const void *data, size_t bytes, off_t offset) {
    int half = step(1);
    if (refuses(control->write_errno, path_of[fd])) return -1;
    if (half) bytes /= 2;
    note('W', inode_of[fd], (uint64_t)offset, NULL, data, bytes);
    return (ssize_t)bytes;
}
static void wrote(void) {
    if (control->kill_at && control->kill_at == control->operations) _exit(137);
}
static ssize_t pwrite_any(int fd, const void *data, size_t bytes, off_t offset) {
    REAL(pwrite64);
    if (!traced(fd)) return real(fd, data, bytes, offset);
    ssize_t most = writing(fd, data, bytes, offset);
    if (most < 0) return -1;
    ssize_t result = real(fd, data, (size_t)most, offset);
    wrote();
    return result;
}
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
    return pwrite_any(fd, data, bytes, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) {
    return pwrite_any(fd, data, bytes, offset);
}
ssize_t write(int fd, const void *data, size_t bytes) {
    if (tracing && fd == 1) note('A', 0, 0, NULL, data, bytes);
    if (!traced(fd)) return real_write(fd, data, bytes);
    int flags = fcntl(fd, F_GETFL);
    off_t at = lseek(fd, 0, flags >= 0 && (flags & O_APPEND) ? SEEK_END : SEEK_CUR);
    ssize_t most = writing(fd, data, bytes, at);
    if (most < 0) return -1;
    ssize_t result = real_write(fd, data, (size_t)most);
    wrote();
    return result;
}

/* What the kernel has copied is read back, and noted late: nothing reads it meanwhile. */
static void note_copied(int fd, off_t offset, ssize_t bytes) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    char *data = malloc((size_t)bytes);
    int saved = tracing;
    tracing = 0;
    int reading = open(link, O_RDONLY | O_CLOEXEC);
    if (!data || reading < 0 || pread(reading, data, (size_t)bytes, offset) != bytes) _exit(92);
    close(reading);
    tracing = saved;
    note('W', inode_of[fd], (uint64_t)offset, NULL, data, (size_t)bytes);
    free(data);
}
ssize_t sendfile64(int out, int in, off64_t *offset, size_t bytes) {
    REAL(sendfile64);
    if (!traced(out)) return real(out, in, offset, bytes);
    step(0);
    if (refuses(control->write_errno, path_of[out])) return -1;
    off_t at = lseek(out, 0, SEEK_CUR);
    ssize_t result = real(out, in, offset, bytes);
    if (result > 0) note_copied(out, at, result);
    return result;
}
ssize_t sendfile(int out, int in, off_t *offset, size_t bytes) {
    return sendfile64(out, in, (off64_t *)offset, bytes);
}
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t bytes,
                        unsigned int flags) {
    REAL(copy_file_range);
    if (!traced(out)) return real(in, from, out, to, bytes, flags);
    errno = EXDEV; /* the caller copies by hand */
    return -1;
}

static int cutting(int fd, off_t length) {
    step(0);
    if (refuses(control->write_errno, path_of[fd])) return 0;
    note('T', inode_of[fd], (uint64_t)length, NULL, NULL, 0);
    return 1;
}
int ftruncate(int fd, off_t length) {
    REAL(ftruncate);
    return traced(fd) && !cutting(fd, length) ? -1 : real(fd, length);
}
int ftruncate64(int fd, off64_t length) {
    REAL(ftruncate64);
    return traced(fd) && !cutting(fd, length) ? -1 : real(fd, length);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t bytes) {
    REAL(fallocate64);
    if (!traced(fd)) return real(fd, mode, offset, bytes);
    errno = EOPNOTSUPP;
    return -1;
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
    return fallocate64(fd, mode, offset, bytes);
}

/* Whether a read is refused: all are, by read_errno, or the one at which fail_read comes to 0. */
static int refuses_read(int fd) {
    if (!traced(fd)) return 0;
    if (control->fail_read && !__atomic_sub_fetch(&control->fail_read, 1, __ATOMIC_SEQ_CST))
        return refuses(EIO, NULL);
    return refuses(control->read_errno, path_of[fd]);
}
ssize_t pread64(int fd, void *data, size_t bytes, off64_t offset) {
    REAL(pread64);
    return refuses_read(fd) ? -1 : real(fd, data, bytes, offset);
}
ssize_t read(int fd, void *data, size_t bytes) {
    REAL(read);
    return refuses_read(fd) ? -1 : real(fd, data, bytes);
}
ssize_t pread(int fd, void *data, size_t bytes, off_t offset) {
    return pread64(fd, data, bytes, offset);
}

/* --- syncs ------------------------------------------------------------------------------------ */

static int syncing(int fd) {
    step(0);
    if (control->kill_sync && is_meant(path_of[fd])) _exit(137);
    note('B', inode_of[fd], 0, NULL, NULL, 0);
    if (!refuses(control->sync_errno, path_of[fd])) return 1;
    int code = errno;
    note('F', inode_of[fd], 0, NULL, NULL, 0);
    errno = code;
    return 0;
}
static int synced(uint64_t inode, int result) {
    if (!result) note('E', inode, 0, NULL, NULL, 0);
    return result;
}
int fsync(int fd) {
    REAL(fsync);
    uint64_t inode = traced(fd);
    if (!inode) return real(fd);
    return syncing(fd) ? synced(inode, real(fd)) : -1;
}
int fdatasync(int fd) {
    REAL(fdatasync);
    uint64_t inode = traced(fd);
    if (!inode) return real(fd);
    return syncing(fd) ? synced(inode, real(fd)) : -1;
}

/* --- mapped files ----------------------------------------------------------------------------- */

static void *mapped(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    if (address == MAP_FAILED || !traced(fd)) return address;
    if (!(protection & PROT_WRITE) || !(flags & MAP_SHARED)) return address;
    pthread_mutex_lock(&lock);
    int each = 0;
    while (each < MAPS && maps[each].address) each++;
    if (each == MAPS) _exit(93);
    maps[each] = (struct map){address, malloc(bytes), bytes, offset, inode_of[fd]};
    memcpy(maps[each].copy, address, bytes);
    pthread_mutex_unlock(&lock);
    return address;
}
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    REAL(mmap);
    void *found = real(address, bytes, protection, flags, fd, offset);
    return mapped(found, bytes, protection, flags, fd, offset);
}
void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset) {
    REAL(mmap64);
    void *found = real(address, bytes, protection, flags, fd, offset);
    return mapped(found, bytes, protection, flags, fd, offset);
}
int munmap(void *address, size_t bytes) {
    REAL(munmap);
    for (int each = 0; tracing && each < MAPS; each++)
        if (maps[each].address == address) {
            pthread_mutex_lock(&lock);
            note_maps();
            maps[each].address = NULL;
            free(maps[each].copy);
            pthread_mutex_unlock(&lock);
        }
    return real(address, bytes);
}
int msync(void *address, size_t bytes, int flags) {
    REAL(msync);
    struct map *map = NULL;
    for (int each = 0; tracing && each < MAPS; each++)
        if (maps[each].address == address) map = &maps[each];
    if (!map) return real(address, bytes, flags);
    uint64_t inode = map->inode;
    step(0);
    note('B', inode, 0, NULL, NULL, 0);
    if (refuses(control->sync_errno, NULL)) {
        note('F', inode, 0, NULL, NULL, 0);
        errno = EIO;
        return -1;
    }
    return synced(inode, real(address, bytes, flags));
}
