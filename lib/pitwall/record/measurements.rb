# frozen_string_literal: true

require "json"
require "pitwall/errors"
require "pitwall/record/sample"

module Pitwall
  module Record
    # A file of what `bench` and `compare` measured: JSON Lines, one object in each line. A line is appended when a
    # process ends, so that a killed run leaves what it had measured. The first line has the settings; most others are
    # samples.
    #
    #   {"schema": "pitwall/measurements-1", "kind": "compare", "settings": {…}, "sides": […], "host": {…}, …}
    #   {"case": {"name": "join", "label": "join", "params": {}, "flags": ["compare"], …}}
    #   {"side": "A", "name": "join", "block": 0, "order": 1, "values": {"wall": [1040.2, …]}, "iterations": 300, …}
    #   {"plan": "join", "max_pairs": 60}   of a comparison: the most pairs that the case might take
    #   {"end": true, "duration_ns": …}
    #   {"counts": "join", "metric": "instructions", "sides": {"main": [81203311, …], "A": […]}}   by runs of their own
    module Measurements
      SCHEMA = "pitwall/measurements-1"
      FIRST_BYTES = "{\"schema\":\"pitwall/measurements-"
      # Bytes of the largest file.
      MOST = 512 << 20
      # Bytes of the longest first line.
      LONGEST_HEAD = 16 << 20
      FIELDS = Sample.members - %i[notes]
      private_constant :MOST, :LONGEST_HEAD, :FIELDS

      # What runs of their own counted. name: the case · sides: name of the side → count of each run, in pairs
      Counts = Struct.new(:name, :metric, :sides, keyword_init: true)

      # What a file holds. cases: Array of Case · plans: name of a case → the most pairs that the case might take
      # counts: Array of Counts
      Contents = Struct.new(:head, :cases, :samples, :plans, :counts, :tail, keyword_init: true) do
        # Whether the run ended by itself. False for a run that was killed.
        #: () -> bool
        def ended? = !tail.nil?
      end

      # Appends to a file, line by line.
      class Writer
        # The file exists and is none of measurements.
        class Taken < UsageError; end

        # An older file of measurements is replaced when the first sample is added.
        # @raise [Taken] the file exists and is another file
        # @raise [UsageError] the file can't be written
        #: (String, Hash[String, untyped]) -> void
        def initialize(path, head)
          if File.size?(path) && File.file?(path) && !Measurements.file?(path)
            raise Taken, "#{path}: exists and holds no measurements; name another file"
          end

          existed = File.exist?(path)
          File.open(path, "a") { nil }
          File.unlink(path) unless existed
          @path = path
          @waiting = [{ "schema" => SCHEMA }.merge(head)]
        rescue SystemCallError => error
          raise UsageError.new("cannot write #{path}: #{SystemCallError.new(error.errno).message}",
                               advice: { another_file: nil })
        end

        # Whether a sample was added.
        #: () -> bool
        def begun? = !@file.nil?

        #: (Sample) -> void
        def add(sample)
          start unless begun?
          fields = FIELDS.to_h { |field| [field.to_s, sample.public_send(field)] }
          write(fields.merge("notes" => sample.notes.map(&:to_s)))
        end

        # Adds a case that will be measured.
        #: (Case) -> void
        def announce(kase) = write({ "case" => kase.to_h.transform_keys(&:to_s) })

        #: (String, Integer) -> void
        def plan(name, max_pairs) = write({ "plan" => name, "max_pairs" => max_pairs })

        #: (Hash[String, untyped]) -> void
        def finish(tail)
          return unless begun? && !@file.closed?

          write({ "end" => true }.merge(tail))
          @file.close
        end

        # Adds what runs of their own counted, after the end of the measurement.
        #: (Counts) -> void
        def count(counts)
          return if @file.nil? || @full

          line = JSON.generate("counts" => counts.name, "metric" => counts.metric, "sides" => counts.sides)
          File.open(@path, "a") { |file| file.puts(line) }
        rescue SystemCallError
          @full = true
        end

        private

        def start
          @file = File.open(@path, "w")
          @file.sync = true
          @waiting.each { |object| write(object) }
        end

        # A full disk ends the file, but not the measurement. Lines before the first sample wait in memory.
        def write(object)
          return @waiting << object unless begun?

          @file.puts(JSON.generate(object)) unless @full
        rescue SystemCallError
          @full = true
        end
      end

      class << self
        # Whether a file is readable and begins as a file of measurements.
        #: (String) -> bool
        def file?(path)
          File.file?(path) && File.readable?(path) && File.binread(path, FIRST_BYTES.bytesize) == FIRST_BYTES
        end

        # Reads the first line of a file: what was measured, and how.
        # @raise [BadRecording]
        #: (String) -> Hash[String, untyped]
        def head(path)
          line = File.open(path, encoding: "UTF-8") { |file| file.gets("\n", LONGEST_HEAD) }
          parse(path, line.to_s, 1).tap { |head| check_schema(path, head["schema"]) }
        rescue SystemCallError => error
          raise BadRecording, "#{path}: #{SystemCallError.new(error.errno).message}"
        end

        # Reads a file. A last line that a kill cut short is left out.
        # @raise [BadRecording] the file is none of measurements, or a line in the middle is damaged
        #: (String) -> Contents
        def read(path)
          raise BadRecording, "#{path}: too large for measurements" if File.size(path) > MOST

          lines = File.foreach(path, encoding: "UTF-8").with_index(1)
          head = parse(path, *lines.next)
          check_schema(path, head["schema"])
          contents = Contents.new(head: head, cases: [], samples: [], plans: {}, counts: [])
          loop do
            line, number = lines.next
            break unless line.end_with?("\n") # cut short by a kill

            add(contents, path, parse(path, line, number), number)
          end
          contents
        rescue SystemCallError => error
          raise BadRecording, "#{path}: #{SystemCallError.new(error.errno).message}"
        rescue StopIteration
          raise BadRecording, "#{path}: empty"
        end

        private

        def check_schema(path, schema)
          return if schema == SCHEMA
          unless schema.to_s.start_with?("pitwall/measurements-")
            raise BadRecording, "#{path}: not measurements of Pitwall"
          end

          raise BadRecording, "#{path}: made by a newer Pitwall (#{schema}); this one reads #{SCHEMA}"
        end

        def add(contents, path, object, number)
          if object["end"] then contents.tail = object
          elsif object["plan"] then contents.plans[object["plan"].to_s] = object["max_pairs"].to_i.clamp(1, 1_000_000)
          elsif object["case"] then contents.cases << read_case(path, object["case"], number)
          elsif object["counts"] then contents.counts << counts(path, object, number)
          else contents.samples << sample(path, object, number)
          end
        end

        def parse(path, line, number)
          object = JSON.parse(line, max_nesting: 20)
          object.is_a?(Hash) ? object : raise(BadRecording, "#{path}: line #{number} is no measurement")
        rescue JSON::ParserError, EncodingError
          raise BadRecording, "#{path}: line #{number} is no JSON"
        end

        def read_case(path, object, number)
          fine = object.is_a?(Hash) && object["name"].is_a?(String) &&
                 (object["params"].nil? || object["params"].is_a?(Hash))
          raise BadRecording, "#{path}: line #{number} is no case" unless fine

          Case.new(index: object["index"].to_i, block: object["block"].to_i, block_name: object["block_name"].to_s,
                   name: object["name"], label: object["label"].to_s,
                   params: object["params"].to_h.transform_values(&:to_s), flags: Array(object["flags"]).map(&:to_s))
        end

        def counts(path, object, number)
          sides = object["sides"]
          fine = object["counts"].is_a?(String) && METRICS.key?(object["metric"]) && sides.is_a?(Hash) &&
                 sides.each_value.all? { |list| list.is_a?(Array) && list.compact.all?(Numeric) }
          raise BadRecording, "#{path}: line #{number} has no counts" unless fine

          sides = sides.transform_values { |list| list.map { |count| count&.to_f } }
          Counts.new(name: object["counts"], metric: object["metric"], sides: sides)
        end

        def sample(path, object, number)
          fine = values?(object["values"]) && object["block"].is_a?(Integer) && object["name"].is_a?(String)
          raise BadRecording, "#{path}: line #{number} is no measurement" unless fine

          fields = FIELDS.to_h { |field| [field, object[field.to_s]] }
          notes = Array(object["notes"]).map { |note| note.to_s.to_sym }
          Sample.new(**fields, side: object["side"].to_s, notes: notes)
        end

        def values?(values)
          values.is_a?(Hash) && values.all? { |_, list| list.is_a?(Array) && list.all?(Numeric) }
        end
      end
    end
  end
end
