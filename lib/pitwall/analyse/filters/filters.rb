# frozen_string_literal: true

require "pitwall/analyse/filters/focus"
require "pitwall/analyse/recording/blackbox"
require "pitwall/analyse/recording/frame_filter"
require "pitwall/analyse/filters/time_range"
require "pitwall/analyse/recording/method_info"
require "pitwall/analyse/recording/origin"
require "pitwall/analyse/some_names"
require "pitwall/analyse/tree/method_match"
require "pitwall/errors"

module Pitwall
  module Analyse
    # What the user wants to see of a recording: a part of its time, samples with certain frames, stacks without certain
    # frames. The order is fixed. Filters that choose samples come first: time, process, thread and label (Selection),
    # focus. Filters that change stacks follow: hide, only, blackbox, gc. So focus finds frames that are hidden.
    #
    # Filters change segments, so all views, exports and comparisons show the same.
    class Filters
      # Whose frames `only` can keep, beside those of a gem.
      ORIGINS = %w[app gems stdlib native].freeze
      # How the filters are asked for, for errors.
      NAMES = { time: "time", focus: "focus", hide: "hide", only: "only", blackbox: "blackbox" }.freeze
      private_constant :NAMES

      # @return [TimeRange, nil]
      attr_reader :time
      # @return [Array<String | MethodMatch::Set>] names as MethodMatch takes them
      attr_reader :focus, :hide, :blackbox
      # @return [String, nil] of ORIGINS, or a gem's name
      attr_reader :only

      # @param focus [Array] samples are kept whose stack has a frame of any of these names
      # @param hide [Array] frames with any of these names are left out
      # @param blackbox [Array] what frames with any of these names called is folded into them
      # @param names [Hash{Symbol => String}] how the filters are asked for, e.g. {focus: "--focus"}
      #: (?time: TimeRange?, ?focus: Array[untyped], ?hide: Array[untyped], ?only: String?, **untyped) -> void
      def initialize(time: nil, focus: [], hide: [], only: nil, blackbox: [], origin: Origin.new, names: NAMES)
        @time = time
        @focus = focus
        @hide = hide
        @only = only
        @blackbox = blackbox
        @origin = origin
        @names = names
      end

      #: () -> bool
      def any? = samples? || frames?

      # Does one of them leave samples out?
      #: () -> bool
      def samples? = !@time.nil? || @focus.any?

      # Does one of them leave frames out?
      #: () -> bool
      def frames? = @hide.any? || !@only.nil?

      # The same filters, whose names are looked up in all of these segments. So what is in one recording only can be
      # asked for where several are compared.
      # @raise [UsageError] none of them has such a time, name or origin
      #: (Array[Record::Segment]) -> Filters
      def known(segments)
        dup.tap { |copy| copy.know(segments) }
      end

      # Checks what was asked for, without any work on samples.
      # @raise [UsageError]
      #: (Array[Record::Segment]) -> void
      def check(segments)
        check_time(segments) if @time
        check_names(segments)
      end

      # The same of names only.
      # @raise [UsageError]
      #: (Array[Record::Segment]) -> void
      def check_names(segments)
        named(segments, :focus)
        named(segments, :hide)
        only_kept(segments) if @only
      end

      # What happened in the time asked for.
      # @raise [UsageError] there is no such time
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def in_time(segments)
        return segments unless @time

        check_time(segments)
        @time.call(segments)
      end

      # Samples that are in focus.
      # @raise [UsageError] no method has such a name
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def in_focus(segments)
        return segments if @focus.empty?

        wanted = named(segments, :focus)
        Focus.new(->(frame) { wanted[key(frame)] }).call(segments)
      end

      # Both.
      # @raise [UsageError]
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def samples(segments) = in_focus(in_time(segments))

      # What leaves frames out of these segments; nil: nothing does.
      # @raise [UsageError] no frame has such a name or origin
      #: (Array[Record::Segment]) -> FrameFilter?
      def frame_filter(segments)
        return unless frames?

        hidden = @hide.any? ? named(segments, :hide) : {}
        kept = @only && only_kept(segments)
        FrameFilter.new(->(frame) { !hidden[key(frame)] && (kept.nil? || kept.call(frame)) })
      end

      # What folds frames into those of `blackbox`; nil: there are none. Reports fold their tree instead.
      # @raise [UsageError] no frame has such a name
      #: (Array[Record::Segment]) -> Blackbox?
      def box(segments)
        return if @blackbox.empty?

        wanted = named(segments, :blackbox)
        Blackbox.new(->(frame) { wanted.key?(key(frame)) })
      end

      # All of them, but `blackbox`.
      # @raise [UsageError]
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def call(segments)
        chosen = samples(segments)
        filter = frame_filter(chosen)
        filter ? filter.call(chosen) : chosen
      end

      # Checks that something is left of segments that have weights.
      # @param kept [Array<Record::Segment>] what {#call} or {#samples} leaves of them
      # @raise [UsageError] nothing is left; the message says which filter left nothing
      #: (Array[Record::Segment], Array[Record::Segment], ?selection: Selection) -> void
      def check_left(segments, kept, selection: Selection.all)
        return unless samples? && Weights.of(kept, selection).empty? && Weights.of(segments, selection).any?

        raise UsageError, emptied(segments, in_time: @time.nil? || Weights.of(in_time(segments), selection).any?)
      end

      # How a filter is asked for, e.g. "--focus".
      #: (Symbol) -> String
      def name(filter) = @names.fetch(filter)

      # For people, the filters that choose samples, then those that change stacks: [["time 2s..5s"], ["hide Foo"]]
      #: () -> [Array[String], Array[String]]
      def words
        [[*("time #{@time}" if @time), *("focus #{@focus.join(", ")}" if @focus.any?)],
         [*("hide #{@hide.join(", ")}" if @hide.any?), *("only #{@only}" if @only)]]
      end

      # For programs: what was asked for.
      #: () -> Hash[String, untyped]
      def to_h
        { "time" => @time && { "from_ns" => @time.from_ns, "to_ns" => @time.to_ns }, "focus" => list(@focus),
          "hide" => list(@hide), "only" => @only }.reject { |_, value| value.nil? || value == [] }
      end

      # Why nothing is left of a recording that has something of the weight.
      # @param in_time [Boolean] was something left of the time?
      #: (Array[Record::Segment], in_time: bool) -> String
      def emptied(segments, in_time:)
        if in_time
          "#{@names[:focus]} #{@focus.join(", ")}: no sample of the part asked for has it in its stack"
        else
          "#{@names[:time]} #{@time}: nothing was sampled in that time of the part asked for; " \
            "the recording is #{seconds(TimeRange.length(segments))} long"
        end
      end

      protected

      def know(segments)
        @methods = methods(segments)
      end

      private

      def seconds(ns) = "#{ns.fdiv(1_000_000_000).round(3)} s"

      def list(names) = names.flat_map { |name| name.is_a?(MethodMatch::Set) ? name.names : name }

      def key(frame) = frame && [frame.name, frame.path, frame.first_line, frame.kind]

      # @return [Hash] keys of the frames that a filter's names mean → true
      def named(segments, filter)
        methods = methods(segments)
        names = public_send(filter)
        numbers = names.flat_map { |name| MethodMatch.find(methods, name, origin: @origin) }
        methods.values_at(*numbers).to_h { |method| [method.to_a, true] }
      rescue UsageError => error
        raise UsageError, "#{@names[filter]}: #{error.message}"
      end

      # Each method that has a node, as a tree lists them.
      def methods(segments)
        return @methods if @methods

        methods = segments.flat_map do |segment|
          frames = segment.frames.values_at(*segment.node_frames.uniq).compact
          frames.map { |frame| MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind) }
        end
        [MethodInfo.new("(root)", "", 0, Record::Frame::PITWALL), *methods.uniq]
      end

      def only_kept(segments)
        test = of_origin
        unless @only == "app" || methods(segments).any? { |method| test.call(method) }
          raise UsageError, "#{@names[:only]} #{@only}: #{without_origin(methods(segments))}"
        end

        ->(frame) { frame.kind == Record::Frame::GC || test.call(frame) }
      end

      # Native code of a gem is the gem's.
      def of_origin
        case @only
        when "app" then ->(frame) { @origin.mine?(frame) }
        when "gems" then ->(frame) { @origin.of(frame) == :gems || !@origin.gem(frame).nil? }
        when "stdlib", "native" then @only.to_sym.then { |origin| ->(frame) { @origin.of(frame) == origin } }
        else ->(frame) { @origin.gem?(frame, @only) }
        end
      end

      def without_origin(methods)
        gems = methods.filter_map { |method| @origin.gem(method) }.uniq.sort
        has = "the recording has #{gems.empty? ? "no gem" : SomeNames.of(gems, 8)}"
        return "the recording has no such frame; #{has}" if ORIGINS.include?(@only)

        near = MethodMatch.hint((ORIGINS + gems).map { |name| MethodInfo.new(name) }, @only)
        near = "; it takes #{ORIGINS.join(", ")} or a gem" if near.empty?
        "no gem of that name#{near}; #{has}"
      end

      # @raise [UsageError]
      def check_time(segments)
        unless TimeRange.timed?(segments)
          raise UsageError, "#{@names[:time]} #{@time}: nothing in the recording has a time: " \
                            "samples, marked requests and rows of system calls have"
        end
        length = TimeRange.length(segments)
        return if @time.from_ns <= length

        raise UsageError, "#{@names[:time]} #{@time}: begins after the recording's end: it is " \
                          "#{seconds(length)} long"
      end
    end
  end
end
