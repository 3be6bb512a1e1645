# frozen_string_literal: true

require "pitwall/cli/support/command"
require "pitwall/cli/recording/page"
require "pitwall/cli/support/page_server"
require "pitwall/cli/recording/project"
require "pitwall/cli/recording/recording_options"
require "pitwall/record/measurements"

module Pitwall
  module CLI
    # `pitwall view FILE…`: the page of a recording in the browser, served to this machine only, until Ctrl-C.
    class View < Command
      include RecordingOptions

      # Keys of options that what was measured has no use for.
      OF_RECORDINGS = %i[weight process time focus hide only blackbox only_mine native source salvage redact
                         symbols].freeze
      private_constant :OF_RECORDINGS

      class << self
        #: () -> String
        def summary = "opens a recording as a page in the browser"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall view a.pit", "the page, in the browser"],
            ["pitwall view before.pit after.pit", "two recordings"]
          ]
        end

        #: () -> String
        def usage = "[options] (FILE.pit… | FOLDER.parts | FILE.jsonl)"
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.on("--weight WEIGHT", WEIGHTS, "what is weighed first: #{WEIGHTS.join(", ")} (wall)") do |weight|
          @options[:weight] = weight
        end
        parser.on("--process PID", Integer, "one process") { |pid| @options[:process] = pid }
        RecordingOptions.define_filters(parser, @options)
        parser.on("--blackbox NAME", "begin with a method folded (or a path, a gem, @SET); repeatable") do |name|
          RecordingOptions.add(@options, :blackbox, name)
        end
        parser.on("--only-mine", "begin with the application's frames only; the page has a button for it") do
          @options[:only_mine] = true
        end
        RecordingOptions.define_native(parser, @options)
        parser.on("--no-source", "leave out the lines of source") { @options[:source] = false }
        parser.on("--salvage", "read what is left of a damaged recording") { @options[:salvage] = true }
        parser.on("--redact", "hash the paths outside the working directory and the values of labels; paths inside " \
                              "become relative") do
          @options[:redact] = true
        end
        NativeNames.define_options(parser, @options)
        parser.on("--port N", Integer, "on 127.0.0.1 (default: one that is free)") do |port|
          @options[:port] = port(port)
        end
        parser.on("--no-open", "print the address and open nothing") { @options[:open] = false }
      end

      #: (Array[String]) -> Integer
      def run(files)
        raise UsageError, "no recording: pitwall view FILE.pit" if files.empty?

        server = PageServer.new(page(files), port: @options.fetch(:port, 0))
        @out.puts(server.address)
        @out.flush
        open_browser(server.address) if @options.fetch(:open, true)
        @err.puts("pitwall: serving to this machine only; #{how_to_end}")
        server.run
        Status::OK
      rescue Interrupt
        Status::OK
      rescue SignalException => error
        raise unless error.signo == Signal.list["TERM"]

        Status::OK
      ensure
        server&.close
      end

      private

      # A script's shell starts what runs in the background with Ctrl-C ignored, as it is meant for what stands in
      # front.
      def how_to_end
        ignored = trap("INT", "DEFAULT") == "IGNORE"
        trap("INT", "IGNORE") if ignored
        ignored ? "it runs in the background, where Ctrl-C is ignored: kill #{Process.pid} ends it" : "Ctrl-C ends it"
      end

      # It is the page that folds native frames.
      def page? = true

      def port(number)
        number.between?(1, 65_535) ? number : raise(UsageError, "--port #{number}: must lie between 1 and 65535")
      end

      def page(files)
        return measured(files) if files.any? { |file| Record::Measurements.file?(file) }

        @options = NativeNames.typed(@options)
        segments, warnings = read(files)
        chosen = narrowing.selection
        chosen.check(segments)
        check_weight(files, segments)
        asked = Views::Asked.new(@options)
        application = Project.application(files)
        RecordingOptions.telling_of_native(@folded) { asked.check_filters_of_page(segments, application.origin) }
        shown = segments.select { |segment| chosen.segment?(segment) }
        Page.render(shown, warnings, patterns: application.patterns, origin: application.origin, start: asked.start,
                                     began_ns: Page.began(segments),
                                     findings: application.findings.call(Analyse::NativeFrames.fold(shown), nil),
                                     source: @options.fetch(:source, true), redacted: @options.fetch(:redact, false))
      end

      def check_weight(files, segments)
        weight = @options[:weight] or return
        known = Page.weights(segments)
        unless known.include?(weight)
          raise UsageError, "--weight #{weight}: was not recorded; #{files.join(" ")} has " \
                            "#{known.empty? ? "none" : known.join(", ")}"
        end
      end

      def measured(files)
        odd = OF_RECORDINGS.find { |name| @options.key?(name) }
        if odd
          raise UsageError, "#{Views.option_name(odd)}: is for recordings; #{files.first} holds what bench or " \
                            "compare measured"
        end

        require "pitwall/cli/measuring/saved_measurement"
        SavedMeasurement.new(files).render("html", PIPE_WIDTH, Show::Plain)
      end

      # Its own output is not ours.
      def open_browser(address)
        Process.detach(spawn("xdg-open", address, in: File::NULL, out: File::NULL, err: File::NULL, pgroup: true))
      rescue SystemCallError
        @err.puts("pitwall: no browser was opened (there is no xdg-open): open the address yourself")
      end
    end
  end
end
