# frozen_string_literal: true

require "json"

module Pitwall
  module Show
    # Allocations for programs: one object. Keys of `sites` that were not asked for by --by are null; `special` is true for rows
    # that stand for no place; `model` says that gc_ns is one. What is not known is null: of objects' ends in bursts, what was retained of a killed process.
    class AllocationsJson
      SCHEMA = "pitwall/allocations-1"
      FIELDS = %i[path line type class method count old total_age min_age max_age bytes slot_bytes freed retained retained_bytes gc_ns].freeze
      OF_ENDS = %w[old total_age min_age max_age freed].freeze
      private_constant :FIELDS, :OF_ENDS

      #: (Analyse::Allocations, Analyse::Summary, by: Array[Symbol], sort: Symbol, ?retained: bool, ?limit: Integer?, ?warnings: Array[untyped], ?findings: Array[untyped]) -> void
      def initialize(allocations, summary, by:, sort:, retained: false, limit: nil, warnings: [], findings: [])
        @allocations = allocations
        @summary = summary
        @by = by
        @sort = sort
        @retained = retained
        @limit = limit
        @warnings = warnings
        @findings = findings
      end

      # Ends without a newline.
      #: () -> String
      def to_s = JSON.generate({ "schema" => SCHEMA, "findings" => @findings, **totals, "by" => @by.map(&:to_s), "sort" => @sort.to_s, "sites" => sites, **strings, **context })

      private

      def totals
        site = Record::Site
        known({ "objects" => @allocations.objects, "bytes" => @allocations.total(:bytes), "old" => @allocations.total(:old),
          "freed" => @allocations.total(:freed), "retained" => @allocations.total(:retained), "retained_bytes" => @allocations.total(:retained_bytes),
          "vm_internal" => @allocations.special(site::VM), "pitwall" => @allocations.special(site::PITWALL),
          "allocated" => @allocations.allocated, "one_in" => @allocations.one_in.round(3), "looked_at" => @allocations.looked_at, "bursts" => @allocations.bursts, "gc_ns" => @allocations.gc_ns })
      end

      def known(object)
        unknown = [*(OF_ENDS unless @allocations.ends?), *("retained" unless @allocations.retained?), *("retained_bytes" unless @allocations.retained_bytes?)]
        object.to_h { |name, value| [name, unknown.include?(name) ? nil : value] }
      end

      def sites
        rows = @allocations.rows(by: @by, sort: @sort, retained: @retained)
        rows = rows.first(@limit) if @limit
        rows.map do |row|
          object = known(FIELDS.to_h { |name| [name.to_s, row[name]] })
          object["stack"] = row.stack if @by.include?(:stack)
          object.merge("special" => row.special)
        end
      end

      def strings
        return {} unless @allocations.strings?

        rows = @allocations.duplicates
        rows = rows.first(@limit) if @limit
        { "strings" => rows.map do |row|
          { "count" => row.count, "length" => row.length, "bytes" => row.bytes, "wasted" => row.wasted,
            "places" => row.places.map { |path, line, count| { "path" => path, "line" => line, "count" => count } } }
        end }
      end

      def context
        header = @summary.headers.first
        { "model" => { "gc_ns" => AllocationsText::MODEL }, "program" => @summary.programs.first, "elapsed_ns" => @summary.elapsed_ns,
          "ruby" => header&.ruby || {}, "host" => header&.host || {}, "settings" => header&.settings || {}, "pids" => @summary.headers.map(&:pid),
          "losses" => @allocations.losses, "notes" => @summary.notes, "warnings" => @warnings }
      end
    end
  end
end
