# frozen_string_literal: true

require "psych"

module Pitwall
  module History
    module Sources
      # What `benchmark-driver --output record` writes: YAML, in which objects of Ruby are keys of mappings. Only the
      # syntax is read. No object is made, whatever the file names. benchmark-driver has no JSON; its record turned into
      # JSON can't keep such keys.
      module BenchmarkDriver
        MARK = /^job_warmup_context_(?:result|metric_value):/.freeze
        # Their metric → metric, unit, and how the number becomes Pitwall's.
        KNOWN = {
          "i/s" => ["wall", "ns", ->(rate) { 1e9 / rate }],
          "s" => ["wall", "ns", ->(seconds) { seconds * 1e9 }],
          "bytes" => ["max_rss", "bytes", ->(bytes) { bytes }]
        }.freeze
        private_constant :MARK, :KNOWN

        # The keys and values of a YAML mapping, as pairs. A key may be a mapping itself.
        Mapping = Struct.new(:pairs) do
          #: (String) -> untyped
          def [](name) = pairs.find { |key, _| key == name }&.last
        end
        private_constant :Mapping

        class << self
          #: (String) -> bool
          def text?(text) = text.match?(MARK)

          # For the list of JSON formats: none.
          #: (untyped) -> bool
          def of?(_object) = false

          #: (String, String, Facts) -> Array[Run]
          def runs(path, text, facts)
            figures = Hash.new { |sides, side| sides[side] = [] }
            each_result(path, text) { |side, job, result| figures[side].concat(figures(facts, job, result)) }
            figures.map do |side, found|
              own = facts.dup
              own.ruby = side unless side.empty?
              found.each { |figure| figure.variant = side }
              Sources.run(text, own, side: side, tool: "benchmark-driver").tap { |run| run.figures = found }
            end
          end

          private

          def each_result(path, text)
            document = Psych.parse(text) or return
            record = plain(document.root, {})
            jobs = record.is_a?(Mapping) ? record["job_warmup_context_result"] : nil
            raise BadRecording, "#{path}: no record of benchmark-driver 0.14 or newer" unless jobs.is_a?(Mapping)

            jobs.pairs.each do |job, phases|
              contexts = phases["false"] # not its warm-up
              next if contexts.nil?

              contexts.pairs.each { |context, result| yield context["name"].to_s, job["name"].to_s, result }
            end
          rescue Psych::SyntaxError, NoMethodError, TypeError
            raise BadRecording, "#{path}: a damaged record of benchmark-driver"
          end

          # A metric that Pitwall doesn't know keeps its name and unit.
          def figures(facts, job, result)
            result["values"].pairs.filter_map do |metric, number|
              value = Float(number, exception: false)
              next if value.nil? || !value.finite? || !value.positive?

              theirs = [metric["name"].to_s, metric["unit"].to_s, :itself.to_proc]
              name, unit, change = KNOWN.fetch(metric["unit"], theirs)
              better = KNOWN.key?(metric["unit"]) || metric["larger_better"] != "true" ? "lower" : "higher"
              figure = Sources.figure(facts, benchmark: job, metric: name, unit: unit, value: change.call(value))
              figure.tap { figure.better = better }
            end
          end

          # @param anchors name → value
          def plain(node, anchors)
            case node
            when Psych::Nodes::Alias then anchors[node.anchor]
            when Psych::Nodes::Scalar then remember(node, node.value, anchors)
            when Psych::Nodes::Sequence
              remember(node, node.children.map { |child| plain(child, anchors) }, anchors)
            when Psych::Nodes::Mapping
              pairs = node.children.each_slice(2).map { |pair| pair.map { |child| plain(child, anchors) } }
              remember(node, Mapping.new(pairs), anchors)
            end
          end

          def remember(node, value, anchors)
            anchors[node.anchor] = value if node.anchor
            value
          end
        end
      end
    end
  end
end
