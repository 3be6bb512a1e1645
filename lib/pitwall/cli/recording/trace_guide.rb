# frozen_string_literal: true

require "tmpdir"
require "pitwall/analyse"
require "pitwall/launch"
require "pitwall/launch/destination"
require "pitwall/launch/parts"
require "pitwall/launch/target_environment"
require "pitwall/record"

module Pitwall
  module CLI
    # Runs a command under the sampler, its output thrown away, and names the methods worth tracing.
    class TraceGuide
      MOST = 5
      LEAST_SHARE = 0.05
      SAMPLER = { interval_ns: 1_000_000, mode: "signal", signal: "URG", flush_ns: 1_000_000_000, keep_argv: 0 }.freeze
      private_constant :MOST, :LEAST_SHARE, :SAMPLER

      # @return [Pitwall::Launch::Finished] what became of the command
      attr_reader :finished
      # Ruby methods with the most CPU time of their own, the C functions and blocks in them included; at least 5% each.
      # @return [Array<String>] none where the command was stopped or failed
      attr_reader :methods

      #: (Array[String]) -> void
      def initialize(command)
        @command = command
        @methods = []
      end

      # Runs the command to its end.
      # @raise [Pitwall::Launch::NotFound, Pitwall::Launch::NotExecutable]
      #: () -> TraceGuide
      def run
        Dir.mktmpdir("pitwall-") do |folder|
          destination = Pitwall::Launch::Destination.new(@command, file: File.join(folder, "guide.pit"))
          environment = Pitwall::Launch::TargetEnvironment.new(parts: destination.parts, options: SAMPLER)
          discarded = { in: File::NULL, out: File::NULL, err: File::NULL }
          @finished = Pitwall::Launch.new(@command, env: environment.to_h, **discarded).call
          @methods = heaviest_of(destination) if finished.status.success? && finished.stopped_by.nil?
        end
        self
      end

      private

      def heaviest_of(destination)
        Pitwall::Launch::Parts.new(destination.parts).merge_into(destination.recording, first: finished.pid)
        return [] unless File.file?(destination.recording)

        heaviest(Analyse::CallTreeBuilder.build(Record.read(destination.recording).segments, weights: %i[cpu]))
      end

      def heaviest(tree)
        owners = owners(tree)
        weights = Hash.new(0)
        tree.selfs(:cpu).each_with_index { |own, node| weights[owners[node]] += own if owners[node] }
        least = tree.total(:cpu) * LEAST_SHARE
        weights.select { |_, weight| weight >= least }.max_by(MOST) { |_, weight| weight }.map(&:first)
      end

      # By node: the name of the innermost Ruby method it runs in; bodies of files and classes have no calls.
      def owners(tree)
        (0...tree.size).each_with_object([]) do |node, owners|
          info = tree.methods[tree.node_methods[node]]
          name = info.name.sub(/\A(?:block|rescue|ensure)(?: .*)? in /, "") if info.ruby?
          method = name && !name.start_with?("<") && name.match?(/[#.]/)
          owners << (method ? name : (owners[tree.parents[node]] if node.positive?))
        end
      end
    end
  end
end
