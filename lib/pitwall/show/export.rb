# frozen_string_literal: true

module Pitwall
  module Show
    # Recordings in the field's formats, a file each.
    module Export
      # A format's name, and its file's → its class.
      FORMATS = {
        "collapsed" => :Collapsed,
        "speedscope" => :Speedscope,
        "callgrind" => :Callgrind,
        "pprof" => :Pprof,
        "firefox" => :Firefox
      }.freeze
      FORMATS.each { |name, constant| autoload constant, "pitwall/show/export/#{name}" }
      private_constant :FORMATS

      class << self
        #: () -> Array[String]
        def names = FORMATS.keys

        # The class, loaded now: some need a gem.
        #: (String) -> Class
        def [](name) = const_get(FORMATS.fetch(name))
      end

      # What `pitwall export` asks each of these classes. Of the answers follow what a format is given, and which options and
      # recordings are refused.
      #
      # One that folds is made of sums: `new(report)`, with one weight. Another gets single rows: `new(segments, weight, selection:)`;
      # without a time line it holds all weights that the recording has, and `weight` says which comes first.
      class Format
        class << self
          # Whether it shows a tree, folded as --blackbox and --gc ask.
          #: () -> bool
          def folds? = false

          # Whether it draws what ran when: only samples tell that, and only their weights.
          #: () -> bool
          def timeline? = false
        end

        # What the format could hold and this recording has not, and why: lines for standard error.
        #: () -> Array[String]
        def missing = []
      end
    end
  end
end
