# frozen_string_literal: true

require_relative "parsed_data"
require_relative "zone_data"

module Pitwall
  module Fastboot
    # What is known of each library whose results are kept (DataLibrary).
    #
    # name:       of the library's module
    # ready:      is it loaded?
    # place:      the module whose methods are replaced
    # methods:    names of the methods that are replaced
    # ours:       Method#parameters without names => the module (ext/fastboot/data.c) that has our method for them
    # own_file:   ends the path of the file with the methods
    # called:     other methods of the place, which the replaced ones call; nil: all other methods of it
    # modules:    their methods make the result, too, also their singleton methods, and `new`
    # optional:   modules that some versions lack
    # evaluated:  methods that the library defines by evaluating strings. Ruby 3.1 and 3.2 name no file for these.
    # harmless:   the tags of a YAML scalar that run no code of the program
    # usual:      has the program left the library's settings as they are?
    # receiver:   is the receiver of a replaced method one that the library makes itself?
    # version:    constants on which the result depends
    # keywords:   known options, and for each a function: the part of the key that a value makes; nil: unknown value
    # bytes:      writes and reads results
    # @api private
    DataFacts = Struct.new(:name, :ready, :place, :methods, :ours, :own_file, :called, :modules, :optional, :evaluated,
                           :harmless, :usual, :receiver, :version, :keywords, :bytes, keyword_init: true)

    class DataFacts
      SIMPLE = [NilClass, TrueClass, FalseClass, Integer].to_h { |type| [type, true] }.freeze
      TEXT = ->(value) { value.inspect if SIMPLE[value.class] }
      NAMES = lambda do |value|
        names = value.map { |name| name.is_a?(Module) || name.is_a?(Symbol) ? name.to_s : name } if value.is_a?(Array)
        names.inspect if names&.all?(String)
      end
      # If the fallback itself is the result, the result is not stored (ParsedData.dump).
      FALLBACK = ->(value) { TEXT.call(value) || "an object" }
      ANY = ->(_) { "any" }
      ALWAYS = ->(_) { true }
      # Older versions of psych wrote the first one before quoted text. Many locale files have it.
      HARMLESS_TAGS = ["!", *%w[str int float bool null].map { |type| "tag:yaml.org,2002:#{type}" }].freeze
      # Psych looks for a tag by these names in `domain_types`. It drops the "!", and puts "tag:" before the rest.
      DOMAINS = ["tag:", *HARMLESS_TAGS].freeze
      # The program has registered none of these tags. If the program registers a tag nil, psych uses it for all
      # values without a tag.
      USUAL_TAGS = lambda do |psych|
        [nil, *HARMLESS_TAGS].none? { |tag| psych.load_tags.key?(tag) } &&
          DOMAINS.none? { |name| psych.domain_types.key?(name) }
      end
      # A reader uses a parser of rules, and an object that keeps one String of each abbreviation. Both must be those of
      # tzinfo. It also calls IO#readline, which Native.files_as_usual? can't judge on Ruby 3.3.
      USUAL_READER = lambda do |reader|
        next false unless [nil, "<internal:io>"].include?(::File.instance_method(:readline).source_location&.first)

        parser = reader.instance_variable_get(:@posix_tz_parser)
        deduper = reader.instance_variable_get(:@string_deduper)
        types = [::TZInfo::DataSources.const_get(:PosixTimeZoneParser), ::TZInfo.const_get(:ConcurrentStringDeduper)]
        [parser, deduper].zip(types).all? { |one, type| one.instance_of?(type) && one.singleton_methods.empty? } &&
          parser.instance_variable_get(:@string_deduper).equal?(deduper)
      end
      private_constant(*constants(false))

      PSYCH = new(
        name: :Psych, ready: ->(found) { found.respond_to?(:domain_types) && found.domain_types },
        place: :singleton_class.to_proc, methods: %i[load_file safe_load_file unsafe_load_file],
        ours: { %i[req keyrest] => :FileAndKeywords }, own_file: "/psych.rb",
        called: %i[load safe_load unsafe_load parse parse_stream parser],
        modules: %w[Parser Handler TreeBuilder Handlers::DocumentStream Visitors::Visitor Visitors::ToRuby
                    Visitors::NoAliasRuby ScalarScanner ClassLoader ClassLoader::Restricted Coder Nodes::Node
                    Nodes::Stream Nodes::Document Nodes::Sequence Nodes::Mapping Nodes::Scalar Nodes::Alias],
        optional: [],
        evaluated: %i[start_sequence end_sequence start_mapping end_mapping big_decimal complex date date_time exception
                      object psych_omap psych_set range rational regexp struct symbol],
        harmless: HARMLESS_TAGS, usual: USUAL_TAGS, receiver: ALWAYS,
        version: %w[VERSION LIBYAML_VERSION],
        keywords: { symbolize_names: TEXT, freeze: TEXT, aliases: TEXT, permitted_classes: NAMES,
                    permitted_symbols: NAMES, fallback: FALLBACK, filename: ANY, strict_integer: TEXT,
                    parse_symbols: TEXT },
        bytes: ParsedData
      ).freeze

      JSON = new(
        name: :JSON, ready: ->(found) { found.respond_to?(:parser) && found.parser },
        place: :singleton_class.to_proc, methods: %i[load_file load_file!],
        ours: { %i[req opt] => :FileAndHash, %i[req keyrest] => :FileAndKeywords }, # keywords since json 3
        own_file: "/json/common.rb",
        called: %i[parse parse! parser], modules: %w[Ext::Parser], optional: %w[Ext::ParserConfig ParserOptions],
        evaluated: [], harmless: [], receiver: ALWAYS,
        usual: ->(found) { found.parser.equal?(found::Ext::Parser) && found::Parser.equal?(found.parser) },
        version: %w[VERSION], keywords: { symbolize_names: TEXT, freeze: TEXT, max_nesting: TEXT, allow_nan: TEXT },
        bytes: ParsedData
      ).freeze

      # The reader of the system's time zones.
      TZINFO = new(
        name: :TZInfo, ready: ->(found) { found.const_defined?("DataSources::ZoneinfoDataSource") },
        place: ->(found) { found.const_get("DataSources::ZoneinfoReader") }, methods: %i[read],
        ours: { %i[req] => :FileAlone }, own_file: "/tzinfo/data_sources/zoneinfo_reader.rb", called: nil,
        modules: %w[RubyCoreSupport DataSources::PosixTimeZoneParser ConcurrentStringDeduper StringDeduper AnnualRules
                    TransitionRule DayOfYearTransitionRule AbsoluteDayOfYearTransitionRule JulianDayOfYearTransitionRule
                    DayOfWeekTransitionRule DayOfMonthTransitionRule LastDayOfMonthTransitionRule TimezoneOffset
                    TimezoneTransition Timestamp TimestampWithOffset],
        optional: [], evaluated: [], harmless: [], usual: ALWAYS, receiver: USUAL_READER,
        version: %w[VERSION DataSources::ZoneinfoReader::GENERATE_UP_TO], keywords: {}, bytes: ZoneData
      ).freeze
    end
  end
end
