# frozen_string_literal: true

require "pitwall/cli/support/boot_runs"
require "pitwall/cli/support/command"
require "pitwall/cli/support/lazy_gems_search"
require "pitwall/fastboot/setup"
require "pitwall/fastboot/state"
require "pitwall/show/boot/lazy_gems_view"
require "pitwall/show/terminal/text"

module Pitwall
  module CLI
    # `pitwall boot cache …`: looks after the pack of `require "pitwall/fastboot"`.
    class BootCache < Command
      MEANINGS = {
        "build" => "run CMD and keep what it loads",
        "verify" => "is all of the pack whole and current?",
        "lazy" => "find gems that CMD can load later",
        "prune" => "drop what no file has any more",
        "stats" => "what is in the pack, what did the last boot do?",
        "clear" => "delete packs and lists"
      }.freeze
      ACTIONS = MEANINGS.keys.freeze
      FORMATS = %w[text json].freeze
      LISTED = 5 # lines that are printed of a list
      COUNT_COLUMNS = 11 # a count, and the space around it
      LEAST_MEANING = 30 # columns
      private_constant :MEANINGS, :FORMATS, :LISTED, :COUNT_COLUMNS, :LEAST_MEANING

      class << self
        #: () -> String
        def verb = "boot cache"

        #: () -> String
        def summary = "the code and data that pitwall/fastboot keeps"

        #: () -> String
        def usage = "#{ACTIONS.join("|")} [options] [-- CMD…]"

        #: () -> bool
        def runs_command? = true

        #: () -> Array[String]
        def argument_words = ACTIONS

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall boot cache build -- bin/rails runner 1", "fill the pack, as in an image build"],
            ["pitwall boot cache verify --boot -- bin/rails runner 1", "does the program boot to the same?"],
            ["pitwall boot cache lazy -- bin/rails runner 1", "load gems when they are first used, if nobody can tell"],
            ["pitwall boot cache stats", "what is in it, and what did the last boot do?"]
          ]
        end
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("The cache is PITWALL_BOOT_CACHE, else tmp/cache/pitwall of the application")
        parser.separator("(with a Gemfile and tmp/), else $XDG_CACHE_HOME/pitwall or ~/.cache/pitwall.")
        parser.separator("")
        MEANINGS.each { |action, meaning| parser.separator("#{action}: #{meaning}") }
        parser.separator("")
        parser.on("--frozen", "build: boots rely on the pack without looking at files") { @options[:frozen] = true }
        parser.on("--boot", "verify: boot CMD without and with it, and compare") { @options[:boot] = true }
        parser.on("--format FORMAT", FORMATS, "stats: #{FORMATS.join(", ")} (text)") do |format|
          @options[:format] = format
        end
      end

      #: (Array[String]) -> (Integer | Ending)
      def call(argv)
        action = argv.first
        return super if action.nil? || action.start_with?("-")
        unless ACTIONS.include?(action)
          words = ACTIONS.join(", ")
          raise UsageError, "boot cache: unknown action #{action}#{CLI.guess(action, ACTIONS)}: #{words}"
        end

        @action = action
        super(argv.drop(1))
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command)
        raise UsageError, "boot cache: which action? #{ACTIONS.join(", ")}" if @action.nil?

        check(command)
        reason = Fastboot.unavailable
        raise CannotMeasure, reason if reason

        send(@action, command)
      end

      private

      OPTIONS_OF = { frozen: "build", boot: "verify", format: "stats" }.freeze
      private_constant :OPTIONS_OF

      def check(command)
        odd = OPTIONS_OF.find { |option, action| @options[option] && @action != action }
        raise UsageError, "--#{odd.first} belongs to boot cache #{odd.last}" if odd

        takes_command = %w[build lazy].include?(@action) || (@action == "verify" && @options[:boot])
        raise UsageError, "no command: pitwall boot cache #{@action} … -- CMD…" if takes_command && command.empty?
        return if takes_command || command.empty?

        raise UsageError, "boot cache #{@action} takes no command#{", only with --boot" if @action == "verify"}"
      end

      def folder
        @folder ||= Fastboot::Folder.default or
          raise UsageError, "there is no folder for the cache: set PITWALL_BOOT_CACHE"
      rescue ArgumentError => error # "~name/…"
        raise UsageError, "PITWALL_BOOT_CACHE: #{error.message}"
      end

      def store
        @store ||= Fastboot::Store.new(folder).tap do
          refusal = Fastboot::Folder.refusal(folder)
          raise UsageError, "#{refusal}: the cache is not used until that is changed" if refusal
        end
      end

      # @return the pack
      def pack
        found = store.open
        return found unless found.is_a?(String)
        raise BadRecording, "#{store.path}: #{found}: pitwall boot cache clear" if File.exist?(store.path)

        may_look = !File.directory?(folder) || File.executable?(folder)
        raise UsageError, "#{store.path}: #{found}#{": pitwall boot cache build -- CMD fills it" if may_look}"
      end

      def build(command)
        check_writable
        fail_if(store.prune(frozen: false)) unless store.open.is_a?(String)
        status = runs(command).start(with: true, store: true)
        return stored_nothing(status) unless File.exist?(store.path)

        frozen = freeze_pack(status) if @options[:frozen]
        size, _, records, = pack.facts
        @out.puts("#{store.path}: #{records} records, #{size} bytes#{", frozen" if frozen}")
        Ending.of(status)
      end

      def check_writable
        raise UsageError, "PITWALL_BOOT_CACHE_READONLY is set: unset it to build" if Fastboot.readonly?

        Fastboot::Folder.make(folder)
        reason = store.unwritable
        raise UsageError, "cannot write in #{folder}: #{reason}" if reason
      rescue SystemCallError => error
        raise UsageError, "cannot make #{folder}: #{error.class.new.message}"
      end

      # A command that failed may not have loaded all of its files.
      # @return [bool] whether the pack is frozen
      def freeze_pack(status)
        if status.success?
          fail_if(store.prune(frozen: true))
        else
          @err.puts("pitwall: #{store.path}: not frozen, because the command failed (#{how_it_ended(status)})")
        end
        status.success?
      end

      # @param status how the command ended
      def how_it_ended(status)
        return "SIG#{Signal.signame(status.termsig)} ended it" if status.signaled?

        "it ended with #{status.exitstatus}"
      end

      # Returns the ending of a command that failed.
      # @raise [CannotMeasure] it did not fail
      def stored_nothing(status)
        ending = how_it_ended(status)
        reason = Fastboot::LastBoot.read(folder)&.fetch("reason")&.last # perhaps of a program before
        ending += "; last report: #{Show::Text.line(reason)}" if reason
        text = "#{store.path}: the command stored nothing (#{ending})"
        raise CannotMeasure, text if status.success?

        @err.puts("pitwall: #{text}")
        Ending.of(status)
      end

      def fail_if(failure)
        raise UsageError, "cannot write #{store.path}: #{failure}" if failure
      end

      def prune(_)
        before, = pack.facts
        fail_if(store.prune)
        after, _, records, = pack.facts
        @out.puts("#{store.path}: #{records} records, #{after} bytes, before #{before}")
        Status::OK
      end

      def clear(_)
        removed = File.directory?(folder) ? store.clear : []
        @out.puts("#{folder}: #{removed.empty? ? "there was nothing" : "deleted #{removed.join(", ")}"}")
        Status::OK
      end

      def stats(_)
        facts = Fastboot::State.of(store)
        return put_json(facts) if @options[:format] == "json"

        @out.puts("#{facts[:path]}: #{facts[:why] || pack_line(facts)}")
        if facts.dig(:pack, :frozen)
          @out.puts("programs that use a frozen pack report nothing: ask Pitwall::Fastboot.stats in the program")
        else
          put_last_boot(facts[:last_boot])
        end
        Status::OK
      end

      def pack_line(facts)
        pack = facts[:pack]
        "#{pack[:files]} files, #{pack[:bytes]} bytes, #{pack[:unused_bytes]} of them out of use" \
          "#{", frozen" if pack[:frozen]}"
      end

      def put_last_boot(last)
        return @out.puts("no boot with it has ended yet") if last.nil?

        @out.puts(Show::Text.line("the last program that ended and could write here: #{last["command"]}"))
        Fastboot::Counts::MEANINGS.each do |name, meaning|
          put_count(last[name], meaning) if last[name]
        end
        last["reason"].each { |reason| @out.puts("  #{Show::Text.line(reason)}") }
        return if last.keys.grep(/\A(?:data_)?hit/).any?

        later = "; the next boot has what was stored" if last["stored"] || last["data_stored"]
        @out.puts("  it did not help: no file came from the pack#{later}")
      end

      def put_count(count, meaning)
        first, *more = Show::Text.wrap(meaning, [width - COUNT_COLUMNS, LEAST_MEANING].max, indent: "")
        @out.puts("  #{count.to_s.rjust(COUNT_COLUMNS - 4)}  #{first}")
        more.each { |line| @out.puts((" " * COUNT_COLUMNS) + line) }
      end

      def put_json(facts)
        require "json"
        @out.puts(JSON.pretty_generate({ schema: "pitwall/boot-cache-1", **facts }))
        Status::OK
      end

      def verify(command)
        checked = Fastboot::State.check(pack)
        counts = checked.select { |state, paths| paths.any? || state == "current" }
        @out.puts("#{store.path}: " + counts.map { |state, paths| "#{paths.size} #{state}" }.join(", "))
        damaged = checked.fetch("damaged")
        put_some("damaged", damaged)
        mend = "pitwall boot cache build -- CMD stores them anew"
        raise BadRecording, "#{store.path}: #{damaged.size} damaged: #{mend}" if damaged.any?

        @options[:boot] ? compare_boots(command) : Status::OK
      end

      def compare_boots(command)
        boots = runs(command)
        compared = boots.compare
        return not_compared(boots.failed) if compared.nil?

        put_differences(compared)
      end

      # @param failed the boot that failed
      def not_compared(failed)
        @out.puts("not compared: the command failed #{failed.how} the accelerator")
        Ending.of(failed.status)
      end

      def put_differences(compared)
        compared.differences.each { |where, lines| put_some(where, lines) }
        return Status::WORSE unless compared.same?

        @out.puts("both boots have the same #{compared.size} features, load paths, constants and methods")
        Status::OK
      end

      def put_some(label, lines)
        lines.first(LISTED).each { |line| @out.puts(Show::Text.line("#{label}: #{line}")) }
        @out.puts("#{label}: #{lines.size - LISTED} more") if lines.size > LISTED
      end

      # Lists the gems that can wait, boots with the list and without the accelerator, and keeps the list if both boots
      # have defined the same.
      def lazy(command)
        raise CannotMeasure, "boot cache lazy needs Ruby 3.2 or newer; this is #{RUBY_VERSION}" unless
          Class.method_defined?(:attached_object)

        boots = runs(command)
        found = LazyGemsSearch.new(boots, folder).call
        return not_compared(boots.failed) if found.nil?
        return put_differences(found.compared) unless found.compared.same?

        @out.puts(Show::LazyGemsView.new(found).lines(width: width))
        Status::OK
      end

      def runs(command) = BootRuns.new(command, folder, quiet: @action != "build")
    end
  end
end
