# frozen_string_literal: true

require "json"
require "pitwall/record/malformed"

module Pitwall
  module Record
    # The `HEAD` of a segment. The JSON is not trusted: each reader method returns a value of its type, or nil.
    class Header
      # Bytes of the largest JSON object in a chunk.
      JSON_BYTES = 1024 * 1024
      private_constant :JSON_BYTES

      # Parses the JSON object of a HEAD, STAT or TAIL chunk.
      # @api private
      #: (String) -> Hash[String, untyped]
      def self.parse_object(payload)
        raise Malformed, "holds #{payload.bytesize} bytes of JSON" if payload.bytesize > JSON_BYTES

        text = String.new(payload, encoding: Encoding::UTF_8)
        raise Malformed, "is not UTF-8" unless text.valid_encoding?

        object = JSON.parse(text, max_nesting: 20)
        raise Malformed, "is not a JSON object" unless object.is_a?(Hash)

        object
      rescue JSON::ParserError
        raise Malformed, "is not JSON"
      end

      # @return [Hash] the object as it was written
      attr_reader :fields

      #: (Hash[String, untyped]) -> void
      def initialize(fields)
        @fields = fields
        unit = fields.fetch("unit_ns", 1)
        unless unit.is_a?(Integer) && unit.between?(1, 1_000_000_000)
          raise Malformed, "has a unit_ns that is not between 1 and 1000000000"
        end

        schema = fields["schema"]
        raise Malformed, "is of schema #{schema.to_s[0, 40].inspect}" unless schema.nil? || schema == "pitwall/record-1"

        @unit_ns = unit
      end

      # @return [Integer] nanoseconds that 1 in a wall or cpu column stands for
      attr_reader :unit_ns

      #: () -> String?
      def program = string(fields["program"])
      #: () -> String?
      def collector = string(fields["collector"])
      # @return [Array<String>] collectors that recorded beside samples: "allocations"…
      #: () -> Array[String]
      def collectors = strings(fields["collectors"])
      # @return [Hash{String => String}, nil] "format" and "file" of a recording that was imported; nil of others
      #: () -> Hash[String, String]?
      def imported
        from = object(fields["imported"]).select { |_, value| value.is_a?(String) }
        from unless from.empty?
      end

      # Whether call paths were estimated from calls between functions, as the imported file had no others.
      #: () -> bool
      def estimated_paths? = imported&.fetch("paths", nil) == "estimated"

      # @return [String, nil] "signal", "outside", "safepoint" or "none"
      #: () -> String?
      def mode = string(fields["mode"])
      # @return [String, nil] why this mode: "asked for", or a reason such as "a core is spare"
      #: () -> String?
      def mode_reason = string(fields["mode_reason"])
      #: () -> Integer?
      def interval_ns = integer(fields["interval_ns"])
      # @return [Integer, nil] Unix time
      #: () -> Integer?
      def started_at_ns = integer(fields["started_at_ns"])
      # @return [Array(String, *Integer), nil] the object that has the interpreter's loop, and the addresses in it at
      #   which the loop and its parts begin
      #: () -> Array[String | Integer]?
      def interpreter
        path, *addresses = fields["interpreter"] if fields["interpreter"].is_a?(Array)
        [path, *addresses] if path.is_a?(String) && addresses.all?(Integer)
      end

      #: () -> Integer?
      def pid = integer(fields["pid"])
      #: () -> Integer?
      def ppid = integer(fields["ppid"])
      # @return [String, nil] the git commit of the program's working directory; nil outside of a repository
      #: () -> String?
      def commit = string(fields["commit"])&.then { |name| name if name.match?(/\A\h{40,64}\z/) }
      # @return [Boolean] whether the Ruby distinguishes blocked threads from running ones
      #: () -> bool
      def thread_states? = fields["thread_states"] == true
      # @return [String, nil] how stacks were read: "own" or "rb_profile_frames"
      #: () -> String?
      def walk = string(fields["walk"])
      #: () -> Hash[String, untyped]
      def ruby = object(fields["ruby"])
      #: () -> Hash[String, untyped]
      def host = object(fields["host"])
      #: () -> Hash[String, untyped]
      def settings = object(fields["settings"])
      # @return [Array<String>] what this Ruby or mode could not record
      #: () -> Array[String]
      def notes = strings(fields["notes"])
      # @return [Array<String>] names of the program's options; values only with --keep-argv
      #: () -> Array[String]
      def argv_options = strings(fields["argv_options"])

      private

      def string(value) = value.is_a?(String) ? value : nil
      def integer(value) = value.is_a?(Integer) && value.between?(0, 1 << 63) ? value : nil
      def object(value) = value.is_a?(Hash) ? value : {}
      def strings(value) = value.is_a?(Array) ? value.grep(String) : []
    end
  end
end
