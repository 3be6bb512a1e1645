# frozen_string_literal: true

module Pitwall
  module Views
    # Options that text suggests. Show draws the text and knows no option: it gets these words from here.
    module Hints
      module_function

      # Of rows that a table leaves out.
      #: (Integer, ?String) -> String
      def rows(count, what = "all") = "--limit #{count} shows #{what}"

      # Of rows that only JSON has.
      #: () -> String
      def json = "--format json has all"

      # Of threads that are left out.
      #: () -> String
      def idle = "--idle counts them"

      # Of waiting that stands apart.
      #: () -> String
      def waiting = "--idle has all"

      # Of rows below the threshold.
      #: () -> String
      def threshold = "--threshold 0 shows all"

      # Of a table by stack without stacks.
      #: () -> String
      def stacks = "record with --stacks"

      #: () -> String
      def threads = "--view threads shows all"

      #: () -> String
      def queries = "--view queries"

      # Of a request by its number.
      #: (Integer) -> String
      def request(number) = "--request #{number} --tree"

      # Of a label by its name.
      #: (String) -> String
      def label(name) = "--label-key #{name}"

      # Of further recordings of each side.
      #: (?String) -> String
      def sides(join = " and ") = "--before FILE#{join}--after FILE"

      # Of places of allocation, which were not recorded.
      #: () -> String
      def places
        "pitwall profile --allocations -- CMD, " \
          "or name a recording of pitwall allocations --stacks -- CMD beside it"
      end

      # Of a change that makes a boot faster. setting: an environment variable that is the change
      #: (String?) -> String
      def boot_proof(setting)
        setting ? "pitwall compare --env PLAIN=1 --env #{setting} -- CMD" : "pitwall compare --dirty -- CMD"
      end

      # Of a finding's fix. retained: whether the fix is proven by the objects that stay.
      #: (String, retained: bool) -> String
      def proof(command, retained:) = "pitwall compare --dirty#{" --retained" if retained} -- #{command}"

      # Of a log's calls with their stacks.
      #: () -> String
      def collapsed = "--collapsed"

      # Of calls that were only counted.
      #: () -> String
      def uncounted = "pitwall syscalls without --count has paths and Ruby lines"

      # Of calls before Pitwall is loaded.
      #: () -> String
      def start = "--start counts those"

      #: () -> String
      def patterns = "--patterns all looks for the others too"

      # Of a comparison's brief text.
      #: () -> String
      def details = "--details shows the rest"

      #: (Integer) -> String
      def budget(seconds) = "--budget #{seconds}"

      # Of a comparison without a verdict.
      #: () -> String
      def longer = "--budget SECONDS measures longer"

      #: (Integer) -> String
      def pairs(count) = "--pairs #{count}"

      # Of dropped samples.
      #: () -> String
      def interval = "take a longer --interval"

      # Of a reader that came late.
      #: () -> String
      def on_time = "--mode signal is on time there"

      # Where another handler took the signal.
      #: () -> String
      def other_signal = "record with another --signal or --mode safepoint"

      # Of a trace whose tree was full.
      #: () -> String
      def fewer_calls = "--depth N or --only-under METHOD need less room"

      # Of strings that the audit leaves out.
      #: () -> String
      def strings = "--format json lists all"

      #: () -> String
      def redaction = "--redact replaces paths outside the working directory."
    end
  end
end
