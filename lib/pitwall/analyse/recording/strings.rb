# frozen_string_literal: true

require "pitwall/analyse/recording/redaction"

module Pitwall
  module Analyse
    # Sorts all strings of a recording into kinds, so that the user sees what a recording contains before sharing it.
    module Strings
      # name: what the strings are. strings: Array of String.
      Kind = Struct.new(:name, :strings)

      # @param base [String] the working directory
      # @return [Array<Kind>] kinds that have strings; each string once, sorted
      #: (Array[Record::Segment], base: String) -> Array[Kind]
      def self.kinds(segments, base:)
        frames = segments.flat_map { |segment| segment.frames.values }
        paths = frames.map(&:path) | segments.flat_map { |segment| segment.shared_objects.map(&:path) }
        redacted, paths = paths.partition { |path| path.start_with?(Redaction::OUTSIDE) }
        fileless, paths = paths.partition { |path| path.start_with?("<", "(") || path == "-e" }
        inside, outside = paths.partition do |path|
          path.start_with?("#{base.chomp("/")}/") || !path.start_with?("/", "../")
        end
        gems, outside = outside.partition { |path| path.include?("/gems/") }
        classes = {
          "names of methods and blocks" => frames.map(&:name), "paths inside the working directory" => inside,
          "code of Ruby itself, evaluated or typed in" => fileless, "paths of gems" => gems, "other paths" => outside,
          "hashed paths" => redacted,
          "names of allocated classes" => segments.flat_map { |segment| segment.sites.map(&:class_name) },
          "labels that the program set" => segments.flat_map(&:label_sets).compact.flat_map(&:to_a).flatten,
          "steps of reference paths" => segments.filter_map(&:holders).flat_map { |one| one.paths.values.flatten },
          "build ids of shared objects" => segments.flat_map { |segment| segment.shared_objects.map(&:build_id) },
          "names of threads" => segments.flat_map { |segment| segment.threads.values.map(&:name) }
        }
        used = classes.values.flatten
        classes["strings that nothing refers to"] = segments.flat_map(&:strings) - used
        segments.each { |segment| fields(segment, classes) }
        classes.map { |name, strings| Kind.new(name, (strings - [""]).uniq.sort) }.reject { |kind| kind.strings.empty? }
      end

      def self.fields(segment, classes)
        places = { "header" => segment.header.fields, "counters" => segment.stats, "end" => segment.tail || {} }
        places.each do |place, object|
          object.each do |key, value|
            found = strings(value)
            (classes["#{place}: #{key}"] ||= []).concat(found) unless found.empty?
          end
        end
      end
      private_class_method :fields

      # Strings anywhere in a JSON value, with the keys of nested objects: {"a" => "x"} → ["a: x"].
      def self.strings(value)
        case value
        when String then [value]
        when Array then value.flat_map { |item| strings(item) }
        when Hash then value.flat_map { |key, item| strings(item).map { |string| "#{key}: #{string}" } }
        else []
        end
      end
      private_class_method :strings
    end
  end
end
