# frozen_string_literal: true

module Pitwall
  module Record
    class SyscallLog
      # Calls of Linux that are about files, and the names of their flags and errors.
      # @api private
      module StraceCalls
        # Shapes of argument lists.
        #
        # PATH:       a path
        # AT:         the descriptor of a folder, a path
        # DESCRIPTOR: a descriptor
        # TWO:        two paths
        # TWO_AT:     folder and path, twice
        # TEXT_AT:    the text of a link, a folder where the call is symlinkat, a path
        # MAP:        the last argument but one is a descriptor
        # NEW:        the call makes a thread or process
        PATH, AT, DESCRIPTOR, TWO, TWO_AT, TEXT_AT, MAP, NEW = *1..8
        SHAPES = {
          PATH => %w[open creat stat lstat stat64 lstat64 access readlink chdir mkdir rmdir unlink chmod chown lchown
                     truncate truncate64 statfs statfs64 utime utimes execve getxattr lgetxattr listxattr llistxattr
                     setxattr lsetxattr removexattr lremovexattr mknod chroot swapon umount2 uselib acct
                     inotify_add_watch],
          AT => %w[openat openat2 newfstatat fstatat64 statx readlinkat faccessat faccessat2 mkdirat unlinkat mknodat
                   fchmodat fchmodat2 fchownat utimensat futimesat execveat name_to_handle_at],
          DESCRIPTOR => %w[read write close fstat fstat64 lseek _llseek pread64 pwrite64 readv writev preadv pwritev
                           preadv2 pwritev2 getdents getdents64 ioctl fcntl fcntl64 flock fsync fdatasync ftruncate
                           ftruncate64 fallocate fadvise64 fadvise64_64 readahead fgetxattr fsetxattr flistxattr
                           fremovexattr fstatfs fstatfs64 fchmod fchown fchdir dup dup2 dup3 sendfile sendfile64
                           copy_file_range splice sync_file_range syncfs],
          TWO => %w[rename link mount pivot_root],
          TWO_AT => %w[renameat renameat2 linkat],
          TEXT_AT => %w[symlink symlinkat],
          MAP => %w[mmap mmap2],
          NEW => %w[clone clone3 fork vfork]
        }.flat_map { |shape, names| names.map { |name| [name, shape] } }.to_h.freeze
        # Calls whose flags stand behind the path.
        BEHIND = %w[open openat statx].freeze
        # Calls whose flags are the last argument.
        LAST = %w[newfstatat fstatat64 unlinkat linkat faccessat2].freeze
        CONSTANTS = {
          "O_WRONLY" => 1, "O_RDWR" => 2, "O_CREAT" => 0o100, "O_EXCL" => 0o200, "O_TRUNC" => 0o1000,
          "O_APPEND" => 0o2000, "O_NONBLOCK" => 0o4000, "O_DIRECTORY" => 0o200000, "O_NOFOLLOW" => 0o400000,
          "O_CLOEXEC" => 0o2000000, "O_PATH" => 0o10000000,
          "AT_SYMLINK_NOFOLLOW" => 0x100, "AT_REMOVEDIR" => 0x200, "AT_SYMLINK_FOLLOW" => 0x400,
          "AT_EMPTY_PATH" => 0x1000
        }.freeze
        # "ENOENT" → 2
        ERRORS = Errno.constants.to_h { |name| [name.to_s, Errno.const_get(name)] }
                      .select { |_, error| error.is_a?(Class) && error < SystemCallError }
                      .transform_values { |error| error::Errno }.freeze
      end
      private_constant :StraceCalls
    end
  end
end
