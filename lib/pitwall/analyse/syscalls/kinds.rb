# frozen_string_literal: true

module Pitwall
  module Analyse
    module Syscalls
      # Kinds of system calls, and the words that patterns use for them.
      # `open` stands for openat on Linux and open_nocancel on macOS. `newfstatat` is a stat, an lstat or an fstat,
      # depending on its flags. Each name that occurs, or each variant of a name, gets a small number: its kind.
      class Kinds
        # Word → names of calls, by system. A pattern may also use the name of a call, which stands for this call only.
        WORDS = {
          "open" => { linux: %w[open openat openat2],
                      darwin: %w[open open_nocancel openat openat_nocancel guarded_open_np] },
          "close" => { linux: %w[close], darwin: %w[close close_nocancel] },
          "read" => { linux: %w[read readv], darwin: %w[read read_nocancel readv] },
          "pread" => { linux: %w[pread64 preadv preadv2], darwin: %w[pread pread_nocancel] },
          "write" => { linux: %w[write writev pwrite64], darwin: %w[write write_nocancel pwrite] },
          "stat" => { linux: %w[stat stat64 newfstatat fstatat64 statx], darwin: %w[stat stat64] },
          "lstat" => { linux: %w[lstat lstat64 newfstatat statx], darwin: %w[lstat lstat64] },
          "fstat" => { linux: %w[fstat fstat64 newfstatat statx], darwin: %w[fstat fstat64] },
          "access" => { linux: %w[access faccessat faccessat2], darwin: %w[access faccessat] },
          "readlink" => { linux: %w[readlink readlinkat], darwin: %w[readlink readlinkat] },
          "entries" => { linux: %w[getdents getdents64],
                         darwin: %w[getdirentries getdirentries64 getdirentriesattr getattrlistbulk] },
          "fgetxattr" => { linux: %w[fgetxattr], darwin: %w[fgetxattr] },
          "seek" => { linux: %w[lseek _llseek], darwin: %w[lseek] },
          "control" => { linux: %w[fcntl fcntl64 ioctl], darwin: %w[fcntl fcntl_nocancel ioctl] },
          "map" => { linux: %w[mmap mmap2], darwin: %w[mmap] },
          "chdir" => { linux: %w[chdir fchdir], darwin: %w[chdir fchdir] }
        }.freeze
        # Name of a call → words, for all systems.
        BY_NAME = WORDS.each_with_object({}) do |(word, systems), words|
          systems.values.flatten.uniq.each { |name| (words[name] ||= []) << word }
        end.transform_values(&:freeze).freeze
        # Calls whose flags tell the variant. Without special flags they are a stat.
        VARIANTS = %w[newfstatat fstatat64 statx].freeze
        NOFOLLOW = 0x100
        EMPTY_PATH = 0x1000
        # Kind of the marker of an earlier pass.
        MARKER = 0
        # Kind of all names beyond MOST, so that a log of garbage does not fill the memory.
        OTHERS = 1
        MOST = 400
        # Largest number of kinds.
        LIMIT = MOST + 3
        private_constant :BY_NAME, :VARIANTS, :NOFOLLOW, :EMPTY_PATH, :MOST

        # Whether a pattern may contain this word or name.
        #: (String) -> bool
        def self.word?(word) = word.match?(/\A[a-z_][a-z0-9_$]*\z/)

        # names: by kind: the call's name. wants: by kind: stages that can start with it, one bit for each.
        attr_reader :names, :wants
        # Name → its kind, or the kinds of its variants.
        attr_reader :by_name

        # @param programs [Array<Program>] learn each new kind
        def initialize(programs)
          @programs = programs
          @by_name = {}
          @names = ["marker", "others"]
          @wants = [0, 0]
        end

        # The kind of a call.
        #: (Record::Syscall) -> Integer
        def of(call)
          kind = @by_name[call.name] || learn(call.name)
          kind.is_a?(Integer) ? kind : kind[variant(call.flags)]
        end

        private

        def variant(flags)
          return 0 if flags.nil? || flags.zero?

          flags & EMPTY_PATH != 0 ? 2 : flags & NOFOLLOW != 0 ? 1 : 0
        end

        def learn(name)
          return OTHERS if @names.size >= MOST

          variants = %w[stat lstat fstat].map { |word| [name, word] } if VARIANTS.include?(name)
          @by_name[name] = variants ? variants.map { |words| add(name, words) } : add(name, [name, *BY_NAME[name]])
        end

        def add(name, words)
          kind = @names.size
          @names << name
          @wants << 0
          @programs.each_with_index { |program, at| @wants[kind] |= 1 << at if program.learn(kind, words) }
          kind
        end
      end
    end
  end
end
