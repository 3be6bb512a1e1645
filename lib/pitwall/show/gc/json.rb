# frozen_string_literal: true

module Pitwall
  module Show
    # `gc` of the JSON report: totals, causes, the time line in equal parts, the longest pauses, all runs.
    # Times are in ns since the start of the first process.
    class GCJson
      PARTS = 100 # parts of the time line
      LONGEST = 10 # pauses, by default
      private_constant :PARTS, :LONGEST

      # @param limit [Integer, nil] number of the longest pauses
      #: (Analyse::GCTimeline, ?limit: Integer?) -> void
      def initialize(timeline, limit: nil)
        @timeline = timeline
        @limit = limit || LONGEST
      end

      # The JSON object.
      #: () -> Hash[String, untyped]
      def to_h
        parts = @timeline.buckets(PARTS).map { |bucket| object(bucket).merge("share" => bucket.share.round(6)) }
        { "recorded" => !@timeline.unrecorded?, "count" => @timeline.count, "majors" => @timeline.majors,
          "total_ns" => @timeline.total_ns, "marking_ns" => @timeline.marking_ns,
          "sweeping_ns" => @timeline.sweeping_ns, "wall_ns" => @timeline.wall_ns,
          "share" => @timeline.share.round(6), "merged" => @timeline.merged?,
          "pauses" => object(@timeline.pauses), "causes" => @timeline.causes.map { |cause| object(cause) },
          "timeline" => parts,
          "longest" => @timeline.longest(@limit).map { |pause| pause(pause) },
          "runs" => @timeline.runs.map { |run| run(run) } }
      end

      private

      def object(struct) = struct.to_h { |name, value| [name.to_s, plain(value)] }

      def plain(value)
        case value
        when Symbol then value.to_s
        when Float then value.round(3)
        else value
        end
      end

      def run(run)
        { "pid" => run.pid, "at_ns" => run.at_ns, **object(run.collection).reject { |name, _| name == "start_ns" } }
      end

      def pause(pause)
        { "pid" => pause.run.pid, "at_ns" => pause.at_ns, "ns" => pause.ns, "major" => pause.run.collection.major?,
          "thread" => pause.thread, "method" => pause.method&.name,
          "path" => pause.method && pause.path, "line" => pause.method && pause.line }
      end
    end
  end
end
