# frozen_string_literal: true

require_relative "parsed_data"
require_relative "zone_data"

module Pitwall
  module Fastboot
    # What is known of each library whose results are kept (DataLibrary). Another library is one more constant here.
    #
    # name:       of the library's module
    # ready:      is it loaded?
    # place:      the module whose methods are replaced
    # methods:    these
    # ours:       the module with our method, by the parameters of the replaced one (ext/fastboot/data.c)
    # own_file:   ends the path of the file with the methods
    # called:     other methods of the place, which the replaced ones call; nil: all others
    # classes:    all methods of these make the result, too
    # optional:   classes that some versions lack
    # singletons: modules whose singleton methods make it, too
    # harmless:   the tags of a YAML file that run no code of the program
    # usual:      is the library set up as usual?
    # version:    constants on which the result depends
    # keywords:   known options, with what is said of their values; nil: unknown
    # bytes:      writes and reads results
    # @api private
    DataFacts = Struct.new(:name, :ready, :place, :methods, :ours, :own_file, :called, :classes, :optional, :singletons,
                           :harmless, :usual, :version, :keywords, :bytes, keyword_init: true)

    class DataFacts
      SIMPLE = [NilClass, TrueClass, FalseClass, Integer].to_h { |type| [type, true] }.freeze
      TEXT = ->(value) { value.inspect if SIMPLE[value.class] }
      NAMES = lambda do |value|
        names = value.map { |name| name.is_a?(Module) || name.is_a?(Symbol) ? name.to_s : name } if value.is_a?(Array)
        names.inspect if names&.all?(String)
      end
      # The result is this object itself, or does not depend on it (ParsedData.dump).
      FALLBACK = ->(value) { TEXT.call(value) || "an object" }
      ANY = ->(_) { "any" }
      # Older versions of psych wrote the first one before quoted text. Many locale files have it.
      HARMLESS_TAGS = ["!", *%w[str int float bool null].map { |type| "tag:yaml.org,2002:#{type}" }].freeze
      # Names of these tags in Psych.domain_types.
      DOMAINS = ["tag:", *HARMLESS_TAGS].freeze
      # The program has not given these tags, or the absence of a tag, a meaning.
      USUAL_TAGS = lambda do |psych|
        [nil, *HARMLESS_TAGS].none? { |tag| psych.load_tags.key?(tag) } &&
          DOMAINS.none? { |name| psych.domain_types.key?(name) }
      end
      private_constant(*constants(false))

      PSYCH = new(
        name: :Psych, ready: ->(found) { found.respond_to?(:domain_types) && found.domain_types },
        place: :singleton_class.to_proc, methods: %i[load_file safe_load_file unsafe_load_file],
        ours: { %i[req keyrest] => :FileAndKeywords }, own_file: "/psych.rb",
        called: %i[load safe_load unsafe_load parse parse_stream parser],
        classes: %w[Parser TreeBuilder Handlers::DocumentStream Visitors::Visitor Visitors::ToRuby Visitors::NoAliasRuby
                    ScalarScanner ClassLoader ClassLoader::Restricted Nodes::Node],
        optional: [], singletons: [], harmless: HARMLESS_TAGS, usual: USUAL_TAGS,
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
        called: %i[parse parse! parser], classes: %w[Ext::Parser], optional: %w[Ext::ParserConfig ParserOptions],
        singletons: %w[Ext::Parser],
        usual: ->(found) { found.parser.equal?(found::Ext::Parser) && found::Parser.equal?(found.parser) },
        version: %w[VERSION], keywords: { symbolize_names: TEXT, freeze: TEXT, max_nesting: TEXT, allow_nan: TEXT },
        bytes: ParsedData
      ).freeze

      # The reader of the system's time zones.
      TZINFO = new(
        name: :TZInfo, ready: ->(found) { found.const_defined?("DataSources::ZoneinfoDataSource") },
        place: ->(found) { found.const_get("DataSources::ZoneinfoReader") }, methods: %i[read],
        ours: { %i[req] => :FileAlone }, own_file: "/tzinfo/data_sources/zoneinfo_reader.rb", called: nil,
        classes: %w[DataSources::PosixTimeZoneParser ConcurrentStringDeduper StringDeduper AnnualRules TransitionRule
                    DayOfYearTransitionRule AbsoluteDayOfYearTransitionRule JulianDayOfYearTransitionRule
                    DayOfWeekTransitionRule DayOfMonthTransitionRule LastDayOfMonthTransitionRule
                    TimezoneOffset TimezoneTransition Timestamp TimestampWithOffset],
        optional: [], singletons: %w[RubyCoreSupport Timestamp TimestampWithOffset], usual: ->(_) { true },
        version: %w[VERSION DataSources::ZoneinfoReader::GENERATE_UP_TO], keywords: {}, bytes: ZoneData
      ).freeze
    end
  end
end
