# frozen_string_literal: true

module Pitwall
  module Collect
    # Records a process all the time, at a low rate, into files that follow each other in a folder of bounded size. All processes that
    # share the folder (the workers of a cluster) obey what its file `control` says: a request to one of them reaches all.
    #
    # A thread of its own looks every second; nothing of this is on the path of a request.
    # @api private
    module Continuous
      DEFAULTS = { rate: 100, rotate: nil, keep: 86_400, max_bytes: 256 << 20, mode: nil, signal: nil, gc: !Compat.gc_events_slow_allocation?,
                   growth: false, one_in: 100 }.freeze
      ROTATE_S = 600
      RATES = (1..10_000)
      MODES = (Session::MODES - ["none"]).freeze
      LEAST_BYTES = 16 << 20
      # Short-lived children leave small files.
      MOST_FILES = 2000
      # What a killed process loses. Each flush costs some hundred bytes.
      FLUSH_NS = 5_000_000_000
      LOOK_S = 1
      # After a failure (a full disk) it is tried again.
      RETRY_S = 60
      # A file written to so recently belongs to somebody, whatever its lock says.
      FRESH_S = 15
      FILE = /\A\d{8}-\d{6}-\d+-\d+\.pit\z/
      private_constant :LEAST_BYTES, :MOST_FILES, :FLUSH_NS, :LOOK_S, :RETRY_S, :FRESH_S, :FILE, :RATES, :MODES, :ROTATE_S

      # Looks after children that Ruby forks: threads do not come along.
      module Forks
        # Process._fork, which all of Ruby's ways to fork go through.
        def _fork
          super.tap { |pid| Continuous.in_child if pid.zero? }
        end
      end
      private_constant :Forks

      class << self
        # @return [String, nil] the folder; nil when this process was not asked for it
        attr_reader :dir

        # Which mode records unasked: on a busy server no core is spare for reading from outside, and on 3.1 a signal has threads
        # that wait for the GVL take turns.
        #: () -> String
        def unasked_mode = Compat.thread_events? ? "signal" : "safepoint"

        # @param control [Integer, nil] a port of 127.0.0.1 to answer on, in this process only
        # @return [Integer, nil] that port
        # @raise [UsageError] a setting out of range, a folder that can't be written, a port that is taken, a bad token; nothing is recorded then
        #: (dir: String, ?control: Integer?, **untyped) -> Integer?
        def begin(dir:, control: nil, **settings)
          settings = check(DEFAULTS.merge(settings))
          check_place(dir, control)
          return if Session.whole_command?
          raise StateError, "already recording continuously to #{@dir}" if @dir
          raise StateError, "already recording to #{Session.path}: stop that first" if Session.recording?

          dir = prepare(File.expand_path(dir))
          listener = Control::Listener.new(Control.new(Control.token(dir)), control) if control
          commence(dir, settings)
          began = @listener = listener
          began&.port
        ensure
          listener&.stop unless began
        end

        # No more recording in this process.
        def end
          return unless @dir

          @dir = nil
          Session.conductor = nil
          @thread&.kill
          @listener&.stop
          Session.stop if Session.recording?
        end

        # start, stop, rotate and toggle are asked of all processes that share the folder; they obey within a second or so.
        #: (Symbol) -> void
        def ask(what)
          on, turn = control
          what = on ? :stop : :start if what == :toggle
          write_control(what == :rotate ? on : what == :start, what == :rotate ? turn + 1 : turn)
          @thread&.wakeup if @thread&.alive?
        rescue ThreadError
          nil # it is ending
        end

        # What this process does, and what there is on the disk.
        #: () -> Hash[Symbol, untyped]
        def status
          files = all
          { wanted: control.first ? "start" : "stop", recording: Session.recording?, pid: Process.pid, dir: @dir, file: (Session.path if Session.recording?),
            rate: @settings[:rate], files: files.size, bytes: files.sum { |file| size(file) }, max_bytes: @settings[:max_bytes], problem: @problem }
        end

        # The process ends. No look begins any more; one that is under way may be between two files, and is waited for.
        def ending
          @ending = true
          100.times { @looking ? sleep(0.01) : break }
        end

        # In a forked child.
        def in_child
          @looking = false # a thread of the parent's
          @listener&.close
          @listener = nil
          watch if @dir
        end

        # The same where its parent was recorded, once what came along of that is gone. Called by Session.
        def forked
          look(sweeps: false)
          in_child # Process.daemon does not come by Process._fork
        end

        private

        def commence(dir, settings)
          @dir = dir
          @settings = settings
          @ended = {} # files that nobody writes to any more, and their sizes
          @turn = control.last
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
          raise UsageError, "continuous: unknown setting #{unknown.first}: known are dir, #{DEFAULTS.keys.join(", ")}" unless unknown.empty?
          raise UsageError, "continuous: rate #{settings[:rate].inspect}: choose 1 to 10_000 samples a second" unless settings[:rate].is_a?(Integer) && RATES.cover?(settings[:rate])

          mode = settings[:mode]
          raise UsageError, "continuous: mode #{mode.inspect}: choose #{MODES.join(" or ")}" unless mode.nil? || MODES.include?(mode.to_s)

          raise UsageError, "continuous: growth #{settings[:growth].inspect}: choose true or false" unless [true, false].include?(settings[:growth])
          one_in = settings[:one_in]
          raise UsageError, "continuous: one_in #{one_in.inspect}: choose a whole number from 1" unless one_in.is_a?(Integer) && one_in.between?(1, 1_000_000_000)

          keep = whole(settings, :keep, 10, "seconds, 10 or more")
          # A file knows the age of the objects that were made while it was written. With growth it therefore lasts as long as it may.
          settings = { **settings, rotate: settings[:rotate] || (settings[:growth] ? keep : ROTATE_S) }
          settings.merge(rotate: whole(settings, :rotate, 10, "seconds, 10 or more"), keep: keep,
                         max_bytes: whole(settings, :max_bytes, LEAST_BYTES, "#{LEAST_BYTES} or more"))
        end

        # Numbers of all kinds, and ActiveSupport's durations, which say that they are numbers; not "24h", of which to_i makes 24.
        def whole(settings, name, least, choice)
          value = settings[name]
          return value.to_i if value.is_a?(Numeric) && value.real? && value.finite? && value.to_i >= least

          raise UsageError, "continuous: #{name} #{value.inspect}: choose #{choice}"
        end

        def check_place(dir, control)
          raise UsageError, "continuous: dir #{dir.inspect}: name a folder" unless (dir.is_a?(String) || dir.respond_to?(:to_path)) && !dir.to_s.empty?
          raise UsageError, "continuous: control #{control.inspect}: choose a port, 1 to 65535, or 0 for a free one" unless control.nil? || (control.is_a?(Integer) && control.between?(0, 65_535))
        end

        # Those around as the umask has it; what is recorded is its owner's.
        def prepare(dir)
          make_around(dir)
          make(dir, 0o700)
          raise UsageError, "continuous: #{dir} can't be written: name another folder" unless File.writable?(dir)

          dir
        rescue SystemCallError => error
          raise UsageError, "continuous: #{dir}: #{SystemCallError.new(error.errno).message}: name another folder"
        end

        def make_around(dir)
          parent = File.dirname(dir)
          return if File.directory?(parent)
          raise Errno::ENOTDIR if File.exist?(parent)

          make_around(parent)
          make(parent, 0o777)
        end

        def make(dir, permissions)
          Dir.mkdir(dir, permissions) unless File.directory?(dir)
        rescue Errno::EEXIST
          raise unless File.directory?(dir) # a worker that boots at the same time was faster
        end

        # A look after the recording was stopped would begin another.
        def mark_ending
          return if @marks_ending

          @marks_ending = true
          at_exit { ending }
        end

        # Once in each process.
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

        # One look. What goes wrong is told once and tried again later; the program goes on.
        def look(sweeps: true)
          return if @dir.nil? || @ending

          @looking = true
          on, turn = control
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          if Session.recording?
            follow(on, turn, now)
          elsif on && !Session.paused? && now >= @retry_at
            @turn = turn
            open_file(now)
          end
          sweep(now) if sweeps
        rescue SystemCallError, Pitwall::Error, IOError => error
          failed(error.message)
        ensure
          @looking = false
        end

        # A file is followed by the next before it has all of its part, beyond which nothing would be written: looks may come late.
        def follow(on, turn, now)
          error = Native.write_error
          failed("#{Session.path}: #{SystemCallError.new(error).message}; what was written is kept") unless error.zero?
          return stop unless on && error.zero?

          part = share
          full = Native.limit(part)
          return unless full || turn != @turn || now - @began >= @settings[:rotate] || size(Session.path) >= part / 4 * 3

          @turn = turn
          stop
          open_file(now)
        end

        def stop
          return unless Session.recording?

          path = Session.path
          Native.limit(0) # its end has to fit in
          Session.stop
          @ended[path] = size(path)
        end

        def open_file(now)
          mode = @settings[:mode] || (@settings[:signal] ? "signal" : unasked_mode)
          why = "what continuous recording takes unasked" unless @settings[:mode] || @settings[:signal]
          options = { interval_ns: 1_000_000_000 / @settings[:rate], flush_ns: FLUSH_NS, mode: mode, mode_reason: why, gc: @settings[:gc], collectors: collectors }
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

          { "allocations" => { "stacks" => "0", "one_in" => @settings[:one_in].to_s, "growth" => "1", "holders" => "0" } }
        end

        def fresh_path
          stem = File.join(@dir, "#{Time.now.strftime("%Y%m%d-%H%M%S")}-#{Process.pid}")
          n = 1
          n += 1 while File.exist?(path = "#{stem}-#{n}.pit")
          path
        end

        # Told once: each try has a path of its own.
        def failed(message)
          @retry_at = Process.clock_gettime(Process::CLOCK_MONOTONIC) + RETRY_S
          told = @problem
          @problem = message
          return if told

          $stderr.write("pitwall: continuous recording stopped, to be tried again: #{message}\n")
        rescue SystemCallError, IOError
          nil # nobody listens
        end

        # What this process's file may grow to: half of the room is for those that are being written, half for those that are done.
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

        # Those that are done stay so, and are not opened again: a day's files of a cluster are hundreds.
        def living?(file)
          return false if @ended.key?(file)
          return true if Time.now - File.mtime(file) < FRESH_S

          File.open(file, "r+") { |io| !io.flock(File::LOCK_EX | File::LOCK_NB) }.tap { |lives| lives || @ended[file] = File.size(file) }
        rescue SystemCallError
          false
        end

        # Removes what is too old or too much, the oldest first; with those being written, all must fit as well.
        def sweep(now)
          return if @swept && now - @swept < 10 && @swept_at == Session.path

          @swept = now
          @swept_at = Session.path
          files = all
          @ended = @ended.slice(*files)
          ended = files.reject { |file| living?(file) }
          bytes = ended.sum { |file| size(file) }
          over = [bytes - (@settings[:max_bytes] / 2), files.sum { |file| size(file) } - @settings[:max_bytes]].max
          limit = Time.now - @settings[:keep]
          left = ended.size
          ended.each do |file|
            break unless over.positive? || left > MOST_FILES || File.mtime(file) < limit

            over -= size(file)
            left -= 1
            File.unlink(file)
          rescue Errno::ENOENT
            nil # another process was faster
          end
        end

        def control_file = File.join(@dir, "control")

        # [whether to record, how often it was asked to rotate]
        def control
          words = File.read(control_file, 64).to_s.split
          [words[0] != "stop", words[1].to_i]
        rescue SystemCallError
          [true, 0]
        end

        def write_control(on, turn)
          File.open("#{control_file}.#{Process.pid}", File::WRONLY | File::CREAT | File::TRUNC, 0o600) { |file| file.syswrite("#{on ? "start" : "stop"} #{turn}\n") }
          File.rename("#{control_file}.#{Process.pid}", control_file)
        end
      end
    end
  end
end
