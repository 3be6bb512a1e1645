# frozen_string_literal: true

require "etc"
require "pitwall/collect/cores"
require "pitwall/doctor/check"
require "pitwall/doctor/proc_file"
require "pitwall/errors"
require "pitwall/native"

module Pitwall
  class Doctor
    # Checks of the kernel, and of the limits set by the kernel or the container.
    # @api private
    module Host
      SIGNALS_WANTED = 1024 # queued signals that should be free: one for each thread of a program
      PROCESS_VM_READV = { "x86_64" => 310, "aarch64" => 270 }.freeze
      private_constant :SIGNALS_WANTED, :PROCESS_VM_READV

      module_function

      # All checks of this module.
      #: () -> Array[Check]
      def checks
        [system, cores, quota, signal, pending_signals, seccomp, system_calls, own_memory, ptrace, perf_events].compact
      end

      # Operating system, kernel version and processor architecture.
      #: () -> Check
      def system
        name = Etc.uname
        value = "#{name[:sysname]} #{name[:release]} #{name[:machine]}#{" in a container" if container?}"
        return Check.of("system", :ok, value) if name[:sysname] == "Linux"

        Check.of("system", :limited, value,
                 affects: ["profile"], mend: "profile in a Linux container",
                 meaning: "Pitwall is built and tested on Linux: elsewhere CPU time of other threads " \
                          "and system settings can't be read")
      end

      # Whether this process seems to run in a container.
      #: () -> bool
      def container?
        File.exist?("/.dockerenv") || File.exist?("/run/.containerenv") ||
          ProcFile.read("/proc/1/cgroup").to_s.match?(/docker|kubepods|containerd|lxc/)
      end

      # Number of cores that this process may use.
      #: () -> Check
      def cores
        cores = available.allowed
        return Check.of("cores", :ok, cores) if cores > 1

        Check.of("cores", :limited, "1",
                 affects: ["profile"],
                 meaning: "Pitwall's own threads take their time from the program's core",
                 mend: "give the process two cores (taskset, docker --cpuset-cpus)")
      end

      # Etc.nprocessors counts only the cores that this process may use.
      #: () -> Collect::Cores
      def available = Collect::Cores.new(Etc.nprocessors)

      # The cgroup's CPU quota in cores. A quota below the number of cores stops the whole process
      # for the rest of each period.
      #: () -> Check?
      def quota
        share = available.quota or return
        state = share < 1.5 ? :limited : :note
        Check.of("CPU quota", state, "#{share.round(2)} cores",
                 affects: state == :limited ? ["profile"] : [],
                 meaning: "when it is used up the whole process stands still, " \
                          "which shows as wall time without CPU time in whatever ran",
                 mend: "raise it while measuring (docker --cpus, resources.limits.cpu)")
      end

      # Whether SIGURG is free. A child process inherits blocked and ignored signals.
      #: () -> Check
      def signal
        number = Signal.list.fetch("URG")
        mask = %w[SigBlk SigIgn].find { |name| ProcFile.signal?(name, number) }
        unless mask
          meaning = "each program is asked again when it starts; Pitwall never takes a handler away"
          return Check.of("signal URG", :ok, "free here", meaning: meaning)
        end

        value = mask == "SigBlk" ? "blocked by whoever started this" : "ignored by whoever started this"
        Check.of("signal URG", :limited, value,
                 affects: ["profile"], meaning: "programs started from here begin so",
                 mend: "take another: --signal WINCH, or --mode safepoint")
      end

      # Number of further signals that the kernel can queue for this user (RLIMIT_SIGPENDING).
      #: () -> Check?
      def pending_signals
        return unless defined?(Process::RLIMIT_SIGPENDING)

        used, limit = ProcFile.status("SigQ").to_s.split("/").map(&:to_i)
        return unless limit

        free = limit - used
        return Check.of("queued signals", :ok, "#{free} free") if free >= SIGNALS_WANTED

        Check.of("queued signals", :limited, "#{free} of #{limit} free", affects: ["profile"],
                 meaning: "each thread's timer needs one: threads beyond that are sampled less often",
                 mend: "raise it: ulimit -i #{SIGNALS_WANTED * 8}")
      end

      # Whether a seccomp filter restricts system calls.
      #: () -> Check?
      def seccomp
        mode = ProcFile.status("Seccomp") or return
        return Check.of("seccomp", :ok, "off") if mode == "0"

        Check.of("seccomp", :note, mode == "2" ? "a filter is set" : "strict",
                 meaning: "some system calls may be refused; the trial above shows whether sampling works")
      end

      # Tries syscall user dispatch, which `pitwall syscalls` uses. Where the kernel refuses, strace is used.
      # nil without the extension: the sampler's check says what is missing.
      #: () -> Check?
      def system_calls
        Pitwall.load_native!
        refusal = Native.syscall_dispatch
        return Check.of("system calls", :ok, "seen from inside the program (syscall user dispatch)") unless refusal

        if ENV["PATH"].to_s.split(File::PATH_SEPARATOR).any? { |folder| File.executable?(File.join(folder, "strace")) }
          Check.of("system calls", :limited, refusal,
                   affects: ["syscalls"], mend: "run it where the kernel allows it",
                   meaning: "pitwall syscalls -- CMD uses strace: many times slower, and without Ruby lines")
        else
          Check.of("system calls", :no, refusal,
                   affects: ["syscalls"], meaning: "pitwall syscalls -- CMD can't see them",
                   mend: "install strace (Debian: apt install strace)")
        end
      rescue CannotMeasure
        nil
      end

      # Reads a string of this process with process_vm_readv. The sampler needs the call to read memory
      # that may have been unmapped: the call then fails instead of crashing.
      #: () -> Check?
      def own_memory
        number = PROCESS_VM_READV[Etc.uname[:machine]]
        return unless number && Etc.uname[:sysname] == "Linux"

        source = "pitwall!".dup
        target = " " * 8
        vectors = [target, source].map { |bytes| [address(bytes), bytes.bytesize].pack("JJ") }
        read = quietly { Kernel.syscall(number, Process.pid, address(vectors[0]), 1, address(vectors[1]), 1, 0) }
        Check.of("process_vm_readv", :ok, read == 8 && target == source ? "allowed on itself" : "read #{read} bytes")
      rescue SystemCallError, NotImplementedError => error
        Check.of("process_vm_readv", :note, "refused (#{error.class.name.split("::").last})",
                 meaning: "stacks can't be read from outside a thread; signals are used instead",
                 mend: "docker --cap-add SYS_PTRACE, or a seccomp profile that allows it")
      end

      # The address of a string's bytes. Kernel#syscall refuses a String that contains a zero byte but takes an address.
      #: (String) -> Integer
      def address(bytes) = [bytes].pack("P").unpack1("J")

      # Runs the block without warnings: Kernel#syscall warns that it is deprecated.
      #: [T] () { () -> T } -> T
      def quietly
        verbose, $VERBOSE = $VERBOSE, nil
        yield
      ensure
        $VERBOSE = verbose
      end

      # The Yama security module's limit for ptrace.
      #: () -> Check?
      def ptrace
        scope = ProcFile.read("/proc/sys/kernel/yama/ptrace_scope") or return
        Check.of("ptrace scope", :ok, scope, meaning: "strace and gdb of running processes depend on it; " \
                                                      "Pitwall doesn't")
      end

      # Whether this user may read hardware counters.
      #: () -> Check?
      def perf_events
        level = ProcFile.read("/proc/sys/kernel/perf_event_paranoid") or return
        return Check.of("perf events", :ok, "perf_event_paranoid #{level}") if level.to_i <= 1 || Process.euid.zero?

        Check.of("perf events", :note, "perf_event_paranoid #{level}",
                 mend: "sysctl kernel.perf_event_paranoid=1 (root)",
                 meaning: "no hardware counters and no kernel frames for `perf`; " \
                          "profiles don't need them")
      end
    end
    private_constant :Host
  end
end
