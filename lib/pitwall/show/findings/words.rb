# frozen_string_literal: true

require "shellwords"
require "pitwall/analyse/recording/method_info"
require "pitwall/show/terminal/location"
require "pitwall/show/findings/growth_words"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # A finding as a sentence, with two commands: one shows more, one proves a fix.
    # Text, JSON, Markdown and the page all use this class.
    class FindingWords
      # @param file [String] the recording
      # @param command [Array<String>, nil] the program's command line; nil where unknown
      # @param repository [Boolean] whether the program lies in a git repository, so that a revision can be compared
      # @param base [String, nil] folder; paths below it are shown relative to it
      # @param hints [Views::Hints] commands that prove a fix
      # @param filters [String] as one types them after the recording: " --focus Foo", or ""
      #: (file: String, hints: untyped, ?command: Array[String]?, ?repository: bool, **untyped) -> void
      def initialize(file:, hints:, command: nil, repository: false, base: nil, filters: "")
        @file = file
        @filters = filters
        @hints = hints
        @command = command && Shellwords.join(command)
        @repository = repository
        @location = Location.new(base)
      end

      # The sentence: "49% of the CPU time (1.2 s) is in Report#to_csv, lib/report.rb:7."
      #: (Analyse::Findings::Finding) -> String
      def sentence(finding) = Text.line("#{send(finding.kind, finding)}.")

      # The command that shows more.
      #: (Analyse::Findings::Finding) -> String
      def more(finding)
        words = finding.view.map { |word| word == finding.path ? @location.text(word, 0) : word }
        Text.line("pitwall report #{@file}#{@filters} #{words.map { |word| quote(word) }.join(" ")}")
      end

      # The command that proves a fix: a comparison of the last revision with the changed files, or of this recording
      # with a recording of the changed program. nil for a folder or several files: these can't be compared.
      #: (Analyse::Findings::Finding) -> String?
      def proof(finding)
        retained = %i[growth retained].include?(finding.kind)
        if finding.proof == :command && @repository
          return Text.line(@hints.proof(@command || "CMD", retained: retained))
        end

        other = File.basename(@file) == "NEW.pit" ? "NEWER.pit" : "NEW.pit"
        Text.line("pitwall compare #{@file} #{other}") if Shellwords.split(@file).size == 1 && @file.end_with?(".pit")
      end

      # The JSON object of a finding.
      #: (Analyse::Findings::Finding) -> Hash[String, untyped]
      def to_h(finding)
        figures = finding.figures.to_h { |name, value| [name.to_s, value.is_a?(Symbol) ? value.to_s : value] }
        { "kind" => finding.kind.to_s, "text" => sentence(finding), "share" => finding.share.round(4),
          "of" => finding.of.to_s, "amount" => finding.amount, "path" => finding.path, "line" => finding.line,
          "method" => finding.method, "subject" => finding.subject, "figures" => figures,
          "label" => finding.label && { finding.label[0] => finding.label[1] },
          "more" => more(finding), "proof" => proof(finding) }
      end

      private

      # A word quoted for a shell. Quotes are easier to read than Shellwords' backslashes: 'route=GET /orders'.
      def quote(word)
        return word if word.match?(%r{\A[\w./:=@,+-]+\z})

        word.include?("'") ? Shellwords.escape(word) : "'#{word}'"
      end

      def percent(finding) = "#{(finding.share * 100).round}%"

      def share(finding, what) = "#{percent(finding)} of the #{what} (#{Units.duration(finding.amount)})"

      def place(finding) = @location.text(finding.path, finding.line)

      # A finding's method and place: "Report#to_csv, lib/report.rb:7". The main program's "<main>" is left out.
      def code(finding)
        words = [(Analyse::MethodInfo.around(finding.method) if finding.method), place(finding)].compact
        words.reject { |word| word.empty? || word.match?(/\A<(?:main|top \(required\)|compiled)>/) }.join(", ")
      end

      def heavy_line(finding)
        below = finding.subject && ", most of it in #{finding.subject}"
        "#{share(finding, "CPU time")} is in #{code(finding)}#{below}"
      end

      def heavy_method(finding) = "#{share(finding, "CPU time")} is in #{code(finding)}, with what it calls"

      def repeated_scan(finding)
        "#{share(finding, "CPU time")} is #{finding.subject}, which goes through the whole object at each call " \
          "from #{code(finding)}"
      end

      def repeated_queries(finding)
        figures = finding.figures
        if figures[:cached].positive?
          cached = ", #{figures[:cached] == figures[:count] ? "all" : "some"} answered by a cache"
        end

        who = finding.subject || "The program"
        a_request = " a request" if finding.of == :requests
        whole = finding.subject ? "its time" : a_request ? "the requests' time" : "the wall time"
        "#{who} ran #{Units.count(figures[:queries])} queries#{a_request} from #{code(finding)}, " \
          "the same but for their values#{cached}; " \
          "that line takes #{percent(finding)} of #{whole} (#{Units.duration(finding.amount)})"
      end

      def boot(finding) = "Loading #{finding.subject} takes #{share(finding, "boot")}; #{place(finding)} loads it"

      def lock(finding)
        figures = finding.figures
        where = @location.text(figures[:waiting_path], figures[:waiting_line])
        held = where == place(finding) ? "" : "; the lock is held longest at #{code(finding)}"
        "#{share(finding, "time of #{Units.things(figures[:threads], "thread")}")} waits for a lock, " \
          "at #{where.empty? ? code(finding) : where}#{held}"
      end

      WAITED_FOR = { child: "for a child process", sleep: "in a sleep", file_lock: "for a file lock",
                     io: "for input or output" }.freeze
      private_constant :WAITED_FOR

      def waiting(finding)
        what = WAITED_FOR.fetch(finding.figures[:what])
        "#{share(finding, "wall time")} is spent waiting #{what} (#{finding.subject}), at #{code(finding)}"
      end

      def garbage(finding)
        charged, runs = finding.figures.values_at(:charged, :runs)
        most = finding.path && "; #{charged ? "most is charged to" : "it interrupted most"} #{code(finding)}"
        booted = finding.figures[:booted]
        boot = " after its boot" if booted
        "Garbage collection takes #{percent(finding)} of the time that the program runs#{boot} " \
          "(#{Units.duration(finding.amount)}#{" in #{Units.things(runs, "run")}" unless booted})#{most}"
      end

      def allocating_line(finding)
        "#{percent(finding)} of the objects (#{Units.count(finding.amount)}) are allocated at #{code(finding)}, " \
          "most of them #{finding.subject}"
      end

      def growth(finding)
        figures = finding.figures
        bytes = figures[:bytes_per_minute].positive? ? " (#{Units.bytes(figures[:bytes_per_minute])})" : ""
        "#{Units.count(figures[:objects])} objects from #{code(finding)} stay and keep growing: " \
          "#{Units.count(ObjectGrowthWords.rounded(figures[:objects_per_minute].to_f))} a minute#{bytes}, " \
          "most of them #{finding.subject}#{others("so do those from", figures[:others])}"
      end

      # Further places of a leak. A leak's objects are often allocated at several lines, and the line that keeps them
      # need not allocate most of them.
      def others(words, places)
        return if places.empty?

        named = places.first(3).map { |path, line| @location.text(path, line) }
        named << Units.things(places.size - 3, "more line") if places.size > 3
        "; #{words} #{[named[0..-2].join(", "), named.last].reject(&:empty?).join(" and ")}"
      end

      def retained(finding)
        others = others("much of the rest is from", finding.figures[:others])
        "#{Units.bytes(finding.amount)} still live at the end (#{percent(finding)} of all that does), " \
          "allocated at #{code(finding)}, most of it #{finding.subject}#{others}"
      end

      def route(finding)
        figures = finding.figures
        "#{finding.subject} takes #{share(finding, "requests' time")}: " \
          "#{Units.things(figures[:requests], "request")}, #{Units.duration(figures[:mean_ns])} each"
      end

      def slow_request(finding)
        number, mean = finding.figures.values_at(:request, :mean_ns)
        "Request #{number} (#{finding.subject}) took #{Units.duration(finding.amount)}; " \
          "the others of its kind #{Units.duration(mean)} on average"
      end

      def slow_test(finding)
        tests, runs = finding.figures.values_at(:tests, :runs)
        often = " (#{Units.things(runs, "run")})" if runs > 1
        "#{percent(finding)} of the time of #{Units.things(tests, "test")} (#{Units.duration(finding.amount)}) " \
          "is in #{finding.subject}#{often}"
      end
    end
  end
end
