# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A file that a process loaded, or another step of its boot.
    #
    # id:         counts up from 1 in the order in which loads began; parent: the load around it, 0: none
    # kind:       "require" (LOAD of doc/record-format.md has all)
    # name:       as the program asked for it: "set"; path: the file: "/usr/lib/ruby/3.4.0/set.rb", or ""
    # from, line: the line of Ruby code that asked for it
    # at_ns:      ns since the recording's start
    # wall_ns, cpu_ns, gc_ns, objects, bytes: with all that it loaded itself
    # compile_ns: until its code was compiled, or read from a cache
    # rss_before, rss_after: resident bytes of the process
    # ending:     0 loaded, 1 not ended, 2 raised
    # repeats, repeat_ns: requires within it that found the file loaded already
    # begun:      pieces of work (requests, jobs, tests) that had begun before
    # cache:      what a cache of code or data said of the file: "bootsnap hit", "fastboot missing"; "": nothing
    Load = Struct.new(:thread, :id, :parent, :kind, :name, :path, :from, :line, :at_ns, :wall_ns, :cpu_ns, :compile_ns,
                      :gc_ns, :objects, :bytes, :rss_before, :rss_after, :ending, :repeats, :repeat_ns, :begun,
                      :cache)

    module Chunks
      # LOAD: what was loaded, in the order in which loads ended.
      class Loads < Chunk
        type "LOAD"
        limit :loads, 2_000_000
        # @return [Array<Load>] in the order of the recording
        offers :loads

        # Older recordings lack it.
        LATER = %i[cache].freeze
        private_constant :LATER

        def initialize(...)
          super
          @loads = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, Load, later: LATER)
          take(:loads, values.first.size)
          @loads.concat(build_all(Load, values))
        end

        def settle(_payload_at) = name_strings(@loads, :kind, :name, :path, :from, :cache)
      end
    end
  end
end
