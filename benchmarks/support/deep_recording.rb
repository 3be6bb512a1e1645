# frozen_string_literal: true

require "fileutils"
lib = File.expand_path("../../lib", __dir__)
$LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
require "pitwall/record/writer"

module Benchmarks
  # A million samples of stacks of 200 frames, Ruby and native frames in turns, as an application with native frames
  # has them: most of a stack is the same as in the sample before. The file is written from Ruby, with a seed, and kept
  # in tmp/ for later runs.
  class DeepRecording
    SAMPLES = 1_000_000
    DEPTH = 200
    STACKS = 10_000
    METHODS = 3000
    FUNCTIONS = 1500
    UNIT_NS = 100_000
    private_constant :STACKS, :METHODS, :FUNCTIONS, :UNIT_NS

    #: (Context) -> void
    def initialize(context)
      @context = context
      @samples = context.quick? ? 2000 : SAMPLES
    end

    # Yields the path and how many samples it holds.
    def with
      path = File.join(ROOT, "tmp", "benchmarks", @context.quick? ? "few-deep.pit" : "million-deep.pit")
      FileUtils.mkdir_p(File.dirname(path))
      write(path) unless kept?(path)
      yield path, @samples
    ensure
      FileUtils.rm_f(path) if path && @context.quick?
    end

    private

    def kept?(path) = File.exist?(path) && File.mtime(path) > File.mtime(__FILE__)

    def write(path)
      random = Random.new(1)
      File.open("#{path}.part", "wb") do |io|
        writer = Pitwall::Record.const_get(:Writer).new(io) # private: the import uses it
        segment = writer.segment("program" => "deep.rb", "pid" => 4242, "interval_ns" => UNIT_NS, "mode" => "signal")
        segment.thread(1, "main")
        nodes = stacks(segment, random)
        @samples.times do
          segment.row(thread: 1, node: nodes[(random.rand**2 * nodes.size).to_i], wall: UNIT_NS, cpu: UNIT_NS)
        end
        segment.close({ "elapsed_ns" => @samples * UNIT_NS })
        writer.close
      end
      File.rename("#{path}.part", path)
    end

    # Nodes of the stacks. Each leaves the stack before it at a random depth, mostly near the leaf.
    def stacks(segment, random)
      path = [0]
      Array.new(@context.quick? ? 50 : STACKS) do
        path = path.first(1 + ((1 - (random.rand**12)) * (path.size - 1)).to_i)
        path << segment.node(path.last, frame(segment, path.size, random), 1 + random.rand(5)) while path.size <= DEPTH
        path.last
      end
    end

    def frame(segment, depth, random)
      if (depth % 5) < 2
        number = random.rand(@context.quick? ? 10 : METHODS)
        return segment.frame("Class#{number % 300}#method_#{number}", "/app/lib/file_#{number % 300}.rb",
                             1 + (number % 90))
      end
      number = random.rand(@context.quick? ? 10 : FUNCTIONS)
      segment.frame("function_#{number}", "/usr/lib/libobject#{number % 6}.so", 0, Pitwall::Record::Frame::NATIVE)
    end
  end
end
