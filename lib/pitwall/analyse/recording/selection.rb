# frozen_string_literal: true

require "pitwall/analyse/threads/states"
require "pitwall/errors"

module Pitwall
  module Analyse
    # Which part of a recording is looked at: a thread (by name, id, or as a report names it), a process, a state, labels ({name => value}, all of them); nil stands
    # for all. without: segment → ids of threads that are left out.
    Selection = Struct.new(:thread, :process, :state, :labels, :without, keyword_init: true) do
      #: () -> Selection
      def self.all = new

      # Whether a segment has the process asked for.
      #: (Record::Segment) -> bool
      def segment?(segment) = process.nil? || segment.header.pid == process

      #: (Record::Segment, Record::Tally) -> bool
      def tally?(segment, tally)
        return false if without && without[segment]&.include?(tally.thread_id)

        (state.nil? || tally.state == state) && (labels.nil? || labels?(segment, tally.label_id)) && (thread.nil? || thread?(segment, tally.thread_id))
      end

      # Whether nothing is left out that only samples can tell apart.
      #: () -> bool
      def every_thread? = thread.nil? && state.nil? && labels.nil?

      # Whether a set of labels holds all that are asked for.
      #: (Record::Segment, Integer) -> bool
      def labels?(segment, label_id) = labels.nil? || labels <= segment.labels(label_id)

      # Whether what a thread called is looked at. Calls are told of running threads only, and have no labels.
      #: (Record::Segment, Integer) -> bool
      def calls?(segment, thread_id)
        return false if state || labels || (without && without[segment]&.include?(thread_id))

        thread.nil? || thread?(segment, thread_id)
      end

      # Whether it is the thread asked for: "worker", "11", "thread 11" where it has no name, and each after its process's id, "4242 worker".
      #: (Record::Segment, Integer) -> bool
      def thread?(segment, id)
        title = segment.thread(id).title
        [title, segment.thread(id).name, id.to_s, "#{segment.header.pid} #{title}"].include?(thread)
      end

      # Raises where nothing can match, with what there is instead.
      # @raise [UsageError]
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

      # One by one, so that what is mistyped is named.
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

        raise UsageError, "nothing in the recording has all of the labels #{labels.map { |pair| pair.join("=") }.join(", ")}"
      end

      def known_threads(segment) = (segment.tallies.map(&:thread_id) + segment.calls.map(&:thread_id)).uniq

      def labels_of(sets)
        names = sets.flat_map(&:keys).uniq
        names.empty? ? "it has none: the program says what its work is for by Pitwall.label" : "its labels are #{list(names)}"
      end

      def list(things)
        return "none" if things.empty?

        things.size > 8 ? "#{things.first(8).join(", ")} and #{things.size - 8} more" : things.join(", ")
      end
    end
  end
end
