# frozen_string_literal: true

require "pitwall/analyse/recording/states"
require "pitwall/analyse/some_names"
require "pitwall/errors"

module Pitwall
  module Analyse
    # The part of a recording that is looked at. A nil field selects everything.
    #
    # thread:  name or id, or a title as in a report (see #thread?)
    # process: process id
    # state:   number of a state (States)
    # labels:  {name => value}; all of them must match
    # without: segment → ids of threads that are left out
    Selection = Struct.new(:thread, :process, :state, :labels, :without, keyword_init: true) do
      # Selects everything.
      #: () -> Selection
      def self.all = new

      # Whether a segment is of the selected process.
      #: (Record::Segment) -> bool
      def segment?(segment) = process.nil? || segment.header.pid == process

      # Whether a tally's samples are selected.
      #: (Record::Segment, Record::Tally) -> bool
      def tally?(segment, tally)
        return false if without && without[segment]&.include?(tally.thread_id)

        return false unless (state.nil? || tally.state == state) && labels?(segment, tally.label_id)

        thread.nil? || thread?(segment, tally.thread_id)
      end

      # Whether no thread, state or label is selected. Only samples have these; allocation sites do not.
      #: () -> bool
      def every_thread? = thread.nil? && state.nil? && labels.nil?

      # Whether a set of labels has all selected labels.
      #: (Record::Segment, Integer) -> bool
      def labels?(segment, label_id) = labels.nil? || labels <= segment.labels(label_id)

      # Whether a thread's traced calls are selected. Traced calls have no state and no labels.
      #: (Record::Segment, Integer) -> bool
      def calls?(segment, thread_id)
        return false if state || labels || (without && without[segment]&.include?(thread_id))

        thread.nil? || thread?(segment, thread_id)
      end

      # Whether a thread is the selected one.
      # Accepts its name ("worker"), its id ("11"), or "thread 11" if it has no name.
      # The name may have the process id before it: "4242 worker".
      #: (Record::Segment, Integer) -> bool
      def thread?(segment, id)
        title = segment.thread(id).title
        [title, segment.thread(id).name, id.to_s, "#{segment.header.pid} #{title}"].include?(thread)
      end

      # Checks that the selection can match.
      # @raise [UsageError] if it cannot; the message lists what the recording has
      #: (Array[Record::Segment]) -> void
      def check(segments)
        unless process.nil? || segments.any? { |segment| segment?(segment) }
          pids = segments.map { |segment| segment.header.pid }.compact.uniq
          raise UsageError, "no process #{process} in the recording; it has #{list(pids)}"
        end
        chosen = segments.select { |segment| segment?(segment) }
        check_labels(chosen)
        return if thread.nil?

        return if chosen.any? { |segment| known_threads(segment).any? { |id| thread?(segment, id) } }

        titles = chosen.flat_map { |segment| known_threads(segment).map { |id| segment.thread(id).title } }
        raise UsageError, "no thread #{thread.inspect} in the recording; it has #{list(titles.uniq)}"
      end

      private

      # Checks each label by itself first, so that the message names the wrong one.
      def check_labels(segments)
        return if labels.nil?

        sets = segments.flat_map(&:label_sets).compact.uniq
        labels.each do |name, value|
          known = sets.filter_map { |set| set[name] }.uniq
          next if known.include?(value)
          raise UsageError, "no label #{name}=#{value} in the recording; #{labels_of(sets)}" if known.empty?

          raise UsageError, "no label #{name}=#{value} in the recording; #{name} is #{list(known.sort)}"
        end
        return if sets.any? { |set| labels <= set }

        wanted = labels.map { |pair| pair.join("=") }.join(", ")
        raise UsageError, "nothing in the recording has all of the labels #{wanted}"
      end

      def known_threads(segment) = [*segment.source.tallies, *segment.source.calls].map(&:thread_id).uniq

      def labels_of(sets)
        names = sets.flat_map(&:keys).uniq
        return "its labels are #{list(names)}" if names.any?

        "it has none: the program says what its work is for by Pitwall.label"
      end

      def list(things) = things.empty? ? "none" : SomeNames.of(things, 8)
    end
  end
end
