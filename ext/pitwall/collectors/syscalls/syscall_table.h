/* Table of recorded system calls: names, and the positions of path and descriptor arguments. Linux, x86-64. */
#ifndef PITWALL_SYSCALL_TABLE_H
#define PITWALL_SYSCALL_TABLE_H

#include <stdint.h>

enum { PW_SYSCALLS = 512 };

/* Classes of calls. `pitwall syscalls` records the first two; with --io also the others. */
enum { PW_OF_PATH = 1, PW_OF_DESCRIPTOR = 2, PW_OF_IO = 4, PW_OF_NETWORK = 8 };

/* Argument positions, from 1; 0: no such argument. `base` and `base2`: descriptors of the folders that relative
 * paths start from. */
typedef struct {
    const char *name;
    uint8_t of, path, base, path2, base2, flags, fd;
} pw_syscall;

extern const pw_syscall pw_syscalls_known[PW_SYSCALLS];

/* Call numbers that the code uses by name. */
enum {
    PW_NR_READ = 0, PW_NR_WRITE = 1, PW_NR_OPEN = 2, PW_NR_CLOSE = 3, PW_NR_STAT = 4, PW_NR_FSTAT = 5, PW_NR_LSTAT = 6,
                 PW_NR_LSEEK = 8, PW_NR_RT_SIGACTION = 13, PW_NR_RT_SIGPROCMASK = 14, PW_NR_RT_SIGRETURN = 15,
                               PW_NR_IOCTL = 16, PW_NR_PREAD64 = 17, PW_NR_ACCESS = 21,
    PW_NR_DUP = 32, PW_NR_DUP2 = 33, PW_NR_NANOSLEEP = 35, PW_NR_GETPID = 39, PW_NR_SOCKET = 41, PW_NR_ACCEPT = 43,
                PW_NR_EXECVE = 59, PW_NR_FCNTL = 72, PW_NR_GETCWD = 79,
    PW_NR_CHDIR = 80, PW_NR_FCHDIR = 81, PW_NR_CREAT = 85, PW_NR_SYMLINK = 88, PW_NR_READLINK = 89,
                  PW_NR_RT_SIGSUSPEND = 130, PW_NR_PRCTL = 157,
    PW_NR_GETTID = 186, PW_NR_TGKILL = 234, PW_NR_EXIT_GROUP = 231, PW_NR_OPENAT = 257, PW_NR_NEWFSTATAT = 262,
                   PW_NR_SYMLINKAT = 266, PW_NR_PSELECT6 = 270, PW_NR_PPOLL = 271, PW_NR_EPOLL_PWAIT = 281,
    PW_NR_ACCEPT4 = 288, PW_NR_DUP3 = 292, PW_NR_SECCOMP = 317, PW_NR_EXECVEAT = 322, PW_NR_IO_PGETEVENTS = 333,
                    PW_NR_CLOSE_RANGE = 436, PW_NR_OPENAT2 = 437,
    PW_NR_EPOLL_PWAIT2 = 441
};

#endif
