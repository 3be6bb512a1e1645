# frozen_string_literal: true

module Pitwall
  module Show
    # Exports recordings to other tools' formats: one class and file for each format.
    module Export
      # Name of a format and of its file → its class.
      FORMATS = {
        "collapsed" => :Collapsed,
        "speedscope" => :Speedscope,
        "callgrind" => :Callgrind,
        "pprof" => :Pprof,
        "firefox" => :Firefox,
        "otlp" => :Otlp
      }.freeze
      FORMATS.each { |name, constant| autoload constant, "pitwall/show/export/#{name}" }
      private_constant :FORMATS

      class << self
        # Names of all formats.
        #: () -> Array[String]
        def names = FORMATS.keys

        # The class of a format. Loads the class's file, and the gem that some formats need.
        #: (String) -> Class
        def [](name) = const_get(FORMATS.fetch(name))
      end

      # The superclass of all formats. `pitwall export` uses {folds?} and {timeline?} to choose the format's arguments,
      # and to refuse options and recordings.
      #
      # A format that folds is created from sums of one weight: `new(report)`.
      # Other formats are created from single rows: `new(segments, weight, selection:)`. Without a time line such a
      # format contains all weights of the recording, and `weight` names the first.
      class Format
        class << self
          # Whether the format shows a call tree, which the option --gc folds.
          #: () -> bool
          def folds? = false

          # Whether the format shows a time line. Only samples have times, so only weights of samples are allowed.
          #: () -> bool
          def timeline? = false
        end

        # Lines for standard error about standard data of the format that the recording doesn't have, with the reasons.
        #: () -> Array[String]
        def missing = []
      end
    end
  end
end
