# frozen_string_literal: true

require_relative "native_extension"
require_relative "own_walk"
require_relative "recorded_program"
require "pitwall/analyse"

# Programs that are recorded with native frames. Functions of NativeExtension say what each stack must be.
module NativeProgram
  include RecordedProgram

  def settings = { native: true, interval_ns: 500_000 }

  def setup
    skip "own walks are not in use: #{OwnWalk.refusal}" if OwnWalk.refusal
    skip "peer absent: a C compiler (apt-get install gcc libc6-dev)" unless NativeExtension.compiler?
    super
    @known = NativeExtension.build
  end

  # Functions of libruby lie between those of the test. A name is written as it is in the recording.
  OURS = /\A(?:c_|burn_in_)/.freeze

  # Stacks of samples, root first, as [names of Ruby frames and of the extension's functions] → captures.
  def stacks(segment)
    segment.tallies.each_with_object(Hash.new(0)) do |tally, all|
      tally.each do |node, _, _, captures|
        next if captures.zero?

        path = []
        while node.positive?
          path.unshift(segment.frame(node))
          node = segment.parents[node]
        end
        all[path] += captures
      end
    end
  end

  def shown(path)
    path.filter_map { |frame| frame.name if frame.kind != 3 || frame.name.match?(OURS) }
  end

  # Records the program's block. Returns the part of each stack that is below a function of the extension.
  def known_stacks(source, leaf:, definitions: "")
    run_program("require #{@known.inspect}\n#{definitions}\nrecord { #{source} }")
    found = stacks(@segment = segment).select { |path, _| path.last.kind == 3 && path.last.name == leaf }
    assert_operator found.each_value.sum, :>, 0, "no sample in #{leaf}"
    found.keys.map do |path|
      names = shown(path).map { |name| name.sub(/ \(program.rb:\d+\)\z/, "") }
      names.drop(names.index("block in <main>") + 1)
    end.uniq
  end

  # Stacks that do not begin with the program's block.
  def known_stacks_of_any(source)
    run_program("require #{@known.inspect}\nrecord { #{source} }")
    found = stacks(@segment = segment).keys.select { |path| path.last.kind == 3 && path.last.name == "burn_in_leaf" }
    found.map { |path| shown(path) }.uniq
  end

  # Stacks with wall time, those of waiting threads included.
  def stacks_of_weight(segment)
    segment.tallies.each_with_object({}) do |tally, all|
      tally.each do |node, wall,|
        path = []
        (path.unshift(segment.frame(node)); node = segment.parents[node]) while node.positive?
        all[path] = wall if wall.positive? && path.any?
      end
    end
  end
end
