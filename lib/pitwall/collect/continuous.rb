# frozen_string_literal: true

module Pitwall
  module Collect
    # Records a process all the time, at a low rate, into a sequence of files in a folder of limited size. All
    # processes that share the folder (the workers of a cluster) follow its file `control`, so a request to
    # one process reaches all.
    #
    # A thread checks the state every second. A request of the program does none of this work.
    # @api private
    module Continuous
      DEFAULTS = { rate: 100, rotate: nil, keep: 86_400, max_bytes: 256 << 20, mode: nil, signal: nil,
                   gc: !Compat.gc_events_slow_allocation?, growth: false, one_in: 100, native: false }.freeze
      ROTATE_S = 600
      RATES = (1..10_000)
      MODES = (Session::MODES - ["none"]).freeze
      MIN_BYTES = 16 << 20
      # A limit for small files, which processes with a short life leave.
      MAX_FILES = 2000
      # A killed process loses at most this time. Each flush costs some hundred bytes.
      FLUSH_NS = 5_000_000_000
      # Between two looks of the thread.
      LOOK_S = 1
      # After a failure (a full disk), the time until the next try.
      RETRY_S = 60
      # A file that was written this recently counts as being written, whatever its lock says.
      FRESH_S = 15
      FILE = /\A\d{8}-\d{6}-\d+-\d+\.pit\z/
      private_constant :MIN_BYTES, :MAX_FILES, :FLUSH_NS, :LOOK_S, :RETRY_S, :FRESH_S, :FILE, :RATES, :MODES, :ROTATE_S

      # Starts the thread in forked children, because threads are not copied by a fork.
      module Forks
        # All of Ruby's methods that fork call Process._fork.
        def _fork
          super.tap { |pid| Continuous.in_child if pid.zero? }
        end
      end
      private_constant :Forks

      class << self
        # @return [String, nil] the folder; nil: continuous recording is off
        attr_reader :dir

        # The default mode. On a busy server no core is spare for mode outside. On Ruby 3.1 a signal makes threads that
        # wait for the GVL take turns, so the mode is safepoint there.
        #: () -> String
        def unasked_mode = Compat.thread_events? ? "signal" : "safepoint"

        # Begins continuous recording. After an exception nothing is recorded.
        # @param dir [String] the folder
        # @param control [Integer, nil] a port of 127.0.0.1 for the endpoint, which this process alone serves
        # @return [Integer, nil] that port
        # @raise [UsageError] a setting out of range, a folder that can't be written, a port in use, a bad token
        # @raise [StateError] already recording
        #: (dir: String, ?control: Integer?, **untyped) -> Integer?
        def begin(dir:, control: nil, **settings)
          settings = check(DEFAULTS.merge(settings))
          check_place(dir, control)
          return if Session.whole_command?
          raise StateError, "already recording continuously to #{@dir}" if @dir
          raise StateError, "already recording to #{Session.path}: stop that first" if Session.recording?

          dir = prepare(File.expand_path(dir))
          listener = Control::Listener.new(Control.new(Control.token(dir)), control) if control
          start_recording(dir, settings)
          kept = @listener = listener
          kept&.port
        ensure
          listener&.stop unless kept
        end

        # Ends continuous recording in this process.
        def end
          return unless @dir

          @dir = nil
          Session.conductor = nil
          @thread&.kill
          @listener&.stop
          Session.stop if Session.recording?
        end

        # Asks all processes that share the folder to :start, :stop, :rotate or :toggle. They do so
        # within about a second.
        #: (Symbol) -> void
        def request(action)
          on, rotations = control
          action = on ? :stop : :start if action == :toggle
          if action == :rotate
            write_control(on, rotations + 1)
          else
            write_control(action == :start, rotations)
          end
          @thread&.wakeup if @thread&.alive?
        rescue ThreadError
          nil # the thread is ending
        end

        # The state of this process and of the folder.
        #: () -> Hash[Symbol, untyped]
        def status
          files = all
          { wanted: control.first ? "start" : "stop", recording: Session.recording?, pid: Process.pid, dir: @dir,
            file: (Session.path if Session.recording?), rate: @settings[:rate], files: files.size,
            bytes: files.sum { |file| size(file) }, max_bytes: @settings[:max_bytes], problem: @problem }
        end

        # Called when the process ends. No look begins any more. A running look may be between two files:
        # it is waited for.
        #
        # Two at_exit handlers call this method. The handler of Session stops the recording and must have no look begin
        # a new one. The handler of `mark_ending` exists also while nothing is recorded, so that no look begins a
        # recording that the end of the process would cut off.
        def ending
          @ending = true
          100.times { @looking ? sleep(0.01) : break }
        end

        # Called in a forked child.
        def in_child
          @looking = false # the parent's thread does not exist here
          @listener&.close
          @listener = nil
          watch if @dir
        end

        # Called by Session in a forked child whose parent was recorded, after the parent's recording was dropped here.
        def forked
          look(sweeps: false)
          in_child # Process.daemon does not call Process._fork
        end

        private

        def start_recording(dir, settings)
          @dir = dir
          @settings = settings
          @ended = {} # path => size, of files that no process writes to any more
          @rotations = control.last
          @retry_at = 0
          open_file(Process.clock_gettime(Process::CLOCK_MONOTONIC)) if control.first
          Session.conductor = self
          mark_ending
          Process.singleton_class.prepend(Forks) unless Process.singleton_class.include?(Forks)
          look
          watch
        rescue Pitwall::Error
          @dir = nil
          raise
        end

        def check(settings)
          unknown = settings.keys - DEFAULTS.keys
          unless unknown.empty?
            refuse("unknown setting #{unknown.first}: known are dir, #{DEFAULTS.keys.join(", ")}")
          end
          check_choices(settings)
          keep = whole(settings, :keep, 10, "seconds, 10 or more")
          # A file has the ages of objects that were allocated while it was written. With growth, a file therefore lasts
          # as long as files are kept.
          settings = { **settings, rotate: settings[:rotate] || (settings[:growth] ? keep : ROTATE_S) }
          settings.merge(rotate: whole(settings, :rotate, 10, "seconds, 10 or more"), keep: keep,
                         max_bytes: whole(settings, :max_bytes, MIN_BYTES, "#{MIN_BYTES} or more"))
        end

        def check_choices(settings)
          rate, mode, growth, one_in, native = settings.values_at(:rate, :mode, :growth, :one_in, :native)
          unless rate.is_a?(Integer) && RATES.cover?(rate)
            refuse("rate #{rate.inspect}: choose 1 to 10_000 samples a second")
          end
          refuse("mode #{mode.inspect}: choose #{MODES.join(" or ")}") unless mode.nil? || MODES.include?(mode.to_s)
          { growth: growth, native: native }.each do |name, value|
            refuse("#{name} #{value.inspect}: choose true or false") unless [true, false].include?(value)
          end
          refuse("native: true goes with mode signal only: leave out mode #{mode}") if native && mode && !signal?(mode)
          return if one_in.is_a?(Integer) && one_in.between?(1, 1_000_000_000)

          refuse("one_in #{one_in.inspect}: choose a whole number from 1")
        end

        # Native frames have the mode "auto" for signal, as elsewhere.
        def signal?(mode) = %w[auto signal].include?(mode.to_s)

        def refuse(message) = raise(UsageError, "continuous: #{message}")

        # Takes numbers of all kinds. ActiveSupport's durations are Numeric as well. A String is refused: `to_i` would
        # make 24 of "24h".
        def whole(settings, name, least, choice)
          value = settings[name]
          return value.to_i if value.is_a?(Numeric) && value.real? && value.finite? && value.to_i >= least

          refuse("#{name} #{value.inspect}: choose #{choice}")
        end

        def check_place(dir, control)
          folder = (dir.is_a?(String) || dir.respond_to?(:to_path)) && !dir.to_s.empty?
          refuse("dir #{dir.inspect}: name a folder") unless folder
          return if control.nil? || (control.is_a?(Integer) && control.between?(0, 65_535))

          refuse("control #{control.inspect}: choose a port, 1 to 65535, or 0 for a free one")
        end

        # Makes the folder, which only its owner may read. The folders around it have the permissions of the umask.
        def prepare(dir)
          make_parents(dir)
          make(dir, 0o700)
          refuse("#{dir} can't be written: name another folder") unless File.writable?(dir)

          dir
        rescue SystemCallError => error
          refuse("#{dir}: #{SystemCallError.new(error.errno).message}: name another folder")
        end

        def make_parents(dir)
          parent = File.dirname(dir)
          return if File.directory?(parent)
          raise Errno::ENOTDIR if File.exist?(parent)

          make_parents(parent)
          make(parent, 0o777)
        end

        def make(dir, permissions)
          Dir.mkdir(dir, permissions) unless File.directory?(dir)
        rescue Errno::EEXIST
          raise unless File.directory?(dir) # another worker has made it at the same time
        end

        # Without this, a look after the end of the recording would begin another one.
        def mark_ending
          return if @marks_ending

          @marks_ending = true
          at_exit { ending }
        end

        # Starts the thread, once in each process.
        def watch
          return if @thread&.alive?

          @thread = Thread.new do
            Thread.current.name = "pitwall continuous"
            Thread.current.report_on_exception = false
            loop do
              sleep LOOK_S
              look
            end
          end
        end

        # One look: starts, stops or rotates the recording as the file `control` says, and removes old files. A failure
        # is reported once and tried again later. It never stops the program.
        def look(sweeps: true)
          return if @dir.nil? || @ending

          @looking = true
          on, rotations = control
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          if Session.recording?
            follow(on, rotations, now)
          elsif on && !Session.paused? && now >= @retry_at
            @rotations = rotations
            open_file(now)
          end
          sweep(now) if sweeps
        rescue SystemCallError, Pitwall::Error, IOError => error
          failed(error.message)
        ensure
          @looking = false
        end

        # Stops or rotates. The next file begins when the current one has three quarters of its share: at the full share
        # nothing more would be written, and looks may come late.
        def follow(on, rotations, now)
          error = Native.write_error
          failed("#{Session.path}: #{SystemCallError.new(error).message}; what was written is kept") unless error.zero?
          return stop unless on && error.zero?

          limit = share
          full = Native.limit(limit)
          due = rotations != @rotations || now - @began >= @settings[:rotate]
          return unless full || due || size(Session.path) >= limit / 4 * 3

          @rotations = rotations
          stop
          open_file(now)
        end

        def stop
          return unless Session.recording?

          path = Session.path
          Native.limit(0) # no limit for the end of the file
          Session.stop
          @ended[path] = size(path)
        end

        def open_file(now)
          native = @settings[:native]
          mode = @settings[:mode] || (@settings[:signal] || native ? "signal" : unasked_mode)
          reason = "what continuous recording takes unasked" unless @settings[:mode] || @settings[:signal] || native
          options = { interval_ns: 1_000_000_000 / @settings[:rate], flush_ns: FLUSH_NS, mode: mode,
                      mode_reason: reason, gc: @settings[:gc], native: native, collectors: collectors }
          signals = @settings[:signal] ? [@settings[:signal]] : Session::SIGNALS
          signals.each_with_index do |signal, at|
            Session.start(path: fresh_path, **options, signal: signal)
            Native.limit(share)
            break
          rescue CannotMeasure
            raise if at == signals.size - 1
          end
          @began = now
          @problem = nil
        end

        def collectors
          return {} unless @settings[:growth]

          options = { "stacks" => "0", "one_in" => @settings[:one_in].to_s, "growth" => "1", "holders" => "0" }
          { "allocations" => options }
        end

        def fresh_path
          stem = File.join(@dir, "#{Time.now.strftime("%Y%m%d-%H%M%S")}-#{Process.pid}")
          n = 1
          n += 1 while File.exist?(path = "#{stem}-#{n}.pit")
          path
        end

        # Reports a failure, once until a recording succeeds. The message can't tell a repetition: each
        # try has another path.
        def failed(message)
          @retry_at = Process.clock_gettime(Process::CLOCK_MONOTONIC) + RETRY_S
          reported = @problem
          @problem = message
          return if reported

          $stderr.write("pitwall: continuous recording stopped, to be tried again: #{message}\n")
        rescue SystemCallError, IOError
          nil # standard error is closed
        end

        # The size limit of this process's file, in bytes. Half of max_bytes is for files that are being written, half
        # for finished ones.
        def share = @settings[:max_bytes] / (2 * [all.count { |file| living?(file) }, 1].max)

        # Oldest first.
        def all
          Dir.children(@dir).grep(FILE).sort.map { |name| File.join(@dir, name) }
        end

        def size(file)
          @ended[file] || File.size(file)
        rescue SystemCallError
          0
        end

        # Whether a process writes to the file. A finished file stays finished and is not opened again: a cluster has
        # hundreds of files a day.
        def living?(file)
          return false if @ended.key?(file)
          return true if Time.now - File.mtime(file) < FRESH_S

          locked = File.open(file, "r+") { |io| !io.flock(File::LOCK_EX | File::LOCK_NB) }
          @ended[file] = File.size(file) unless locked
          locked
        rescue SystemCallError
          false
        end

        # Removes finished files, the oldest first: files that are too old, and files beyond the limits. Finished files
        # may take half of max_bytes; together with the files that are being written they may take all of it.
        def sweep(now)
          return if @swept && now - @swept < 10 && @swept_at == Session.path

          @swept = now
          @swept_at = Session.path
          files = all
          @ended = @ended.slice(*files)
          ended = files.reject { |file| living?(file) }
          bytes = ended.sum { |file| size(file) }
          excess = [bytes - (@settings[:max_bytes] / 2), files.sum { |file| size(file) } - @settings[:max_bytes]].max
          oldest = Time.now - @settings[:keep]
          left = ended.size
          ended.each do |file|
            break unless excess.positive? || left > MAX_FILES || File.mtime(file) < oldest

            excess -= size(file)
            left -= 1
            File.unlink(file)
          rescue Errno::ENOENT
            nil # another process has removed it
          end
        end

        def control_file = File.join(@dir, "control")

        # @return [Array(bool, Integer)] whether to record, and the number of rotations asked for so far
        def control
          words = File.read(control_file, 64).to_s.split
          [words[0] != "stop", words[1].to_i]
        rescue SystemCallError
          [true, 0]
        end

        def write_control(on, rotations)
          new = "#{control_file}.#{Process.pid}"
          File.open(new, File::WRONLY | File::CREAT | File::TRUNC, 0o600) do |file|
            file.syswrite("#{on ? "start" : "stop"} #{rotations}\n")
          end
          File.rename(new, control_file)
        end
      end
    end
  end
end
