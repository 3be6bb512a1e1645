# frozen_string_literal: true

require "tmpdir"
require "pitwall/errors"
require "pitwall/launch"
require "pitwall/launch/plain_path"

module Pitwall
  module CLI
    # Boots of a command without and with pitwall/fastboot, for `pitwall boot cache`.
    class BootRuns
      # how:    "with" or "without"
      # status: Process::Status
      Failed = Struct.new(:how, :status)

      # What two boots have defined: lines of features, load paths, constants and methods.
      #   woken   lazy gems that the boot with the accelerator has loaded
      #   plain_values, fast_values   lines "name value" of constants and modules' variables
      #   plain_memory   the peak memory of the boot without the accelerator, in MiB; 0: unknown
      Compared = Struct.new(:plain, :fast, :woken, :plain_values, :fast_values, :plain_memory) do
        #: () -> bool
        def same? = plain == fast

        #: () -> Integer
        def size = plain.size

        # @return whose lines they are => lines that only this boot has
        #: () -> Hash[String, Array[String]]
        def differences = { "without it only" => plain - fast, "with it only" => fast - plain }
      end

      FASTBOOT = File.expand_path("../../fastboot", __dir__) # lib/pitwall/fastboot.rb, and its folder
      private_constant :FASTBOOT

      # @return [Failed, nil] the boot for which `compare` returned nil
      attr_reader :failed

      # @param folder [String] the folder of the cache
      # @param quiet whether the command's standard output is discarded
      #: (Array[String], String, quiet: bool) -> void
      def initialize(command, folder, quiet:)
        @command = command
        @folder = folder
        @redirections = quiet ? { out: File::NULL } : {}
      end

      # Runs the command to its end.
      # @param with run it with the accelerator. Otherwise the accelerator is off, also if the program starts it.
      # @param store whether each Ruby that the command starts is to store its code in any case: when it ends and
      #   another process is writing the pack, it waits
      # @param parts files of lib/pitwall/fastboot/ that the command loads, too
      # @raise [Launch::NotFound, Launch::NotExecutable]
      #: (with: bool, ?store: bool, ?parts: Array[String], ?env: Hash[String, String?]) -> Process::Status
      def start(with:, store: false, parts: [], env: {})
        files = [*(FASTBOOT if with), *parts.map { |part| File.join(FASTBOOT, part) }]
        required = files.map { |file| "-r#{Launch::PlainPath.of("#{file}.rb", "pitwall_boot_#{File.basename(file)}")}" }
        all = { "RUBYOPT" => [*required, ENV["RUBYOPT"]].compact.join(" "), "PITWALL_BOOT_CACHE" => @folder,
                "PITWALL_BOOT_STORE" => ("1" if store), **(with ? {} : { "PITWALL_FASTBOOT" => "off" }), **env }
        Launch.new(@command, env: all, **@redirections).call.status
      end

      # Boots without and with the accelerator.
      # @param values whether to compare values, too
      # @param env variables of the boot with it
      # @return [Compared, nil] nil: a boot failed
      # @raise [CannotMeasure] the command ended without at_exit, or is no Ruby
      #: (?values: bool, ?env: Hash[String, String?]) -> Compared?
      def compare(values: false, env: {})
        Dir.mktmpdir("pitwall-boot") do |temporary|
          files = %w[without with].map { |how| File.join(temporary, how) }
          files.each do |file|
            status = probe(file, values, env)
            return fail_by(File.basename(file), status) unless status.success?
          end
          Compared.new(*files.map { |file| lines_of(file) }, lines_of("#{files.last}.woken", optional: true),
                       *files.map { |file| lines_of("#{file}.values", optional: !values) },
                       lines_of("#{files.first}.memory").first.to_i)
        end
      end

      # What a probe has written.
      # @param optional whether there may be no such file
      # @raise [CannotMeasure]
      #: (String, ?optional: bool) -> Array[String]
      def lines_of(file, optional: false)
        return File.binread(file).force_encoding("UTF-8").scrub.lines(chomp: true) if File.file?(file)
        return [] if optional

        raise CannotMeasure, "the command ended without its at_exit handlers, or is no Ruby"
      end

      # Variables for a process that loads the part "probe".
      #: (String, bool) -> Hash[String, String?]
      def probe_environment(file, values)
        { "PITWALL_BOOT_PROBE" => file, "PITWALL_BOOT_PROBE_PARENT" => Process.pid.to_s,
          "PITWALL_BOOT_PROBE_VALUES" => ("1" if values) }
      end

      # Notes that a boot failed.
      #: (String, Process::Status) -> nil
      def fail_by(how, status)
        @failed = Failed.new(how, status)
        nil
      end

      private

      def probe(file, values, env)
        fast = File.basename(file) == "with"
        start(with: fast, parts: ["probe"], env: { **probe_environment(file, values), **(fast ? env : {}) })
      end
    end
  end
end
