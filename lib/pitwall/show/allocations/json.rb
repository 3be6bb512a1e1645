# frozen_string_literal: true

require "json"

module Pitwall
  module Show
    # Allocations as a JSON object.
    # Keys of `sites` that --by doesn't name are null. `special` is true for rows that are no place of the program.
    # `model` explains that gc_ns is computed by a model.
    # Unknown values are null: objects' ages and ends when objects were followed in bursts, and the retained objects
    # of a killed process.
    class AllocationsJson
      SCHEMA = "pitwall/allocations-1"
      FIELDS = %i[path line type class method count old total_age min_age max_age bytes slot_bytes freed
                  retained retained_bytes gc_ns].freeze
      # Fields that are known only for objects that were followed to their end.
      OF_ENDS = %w[old total_age min_age max_age freed].freeze
      private_constant :FIELDS, :OF_ENDS

      # @param by [Array<Symbol>] the keys that rows are grouped by
      # @param sort [Symbol] the counter that rows are sorted by
      #: (Analyse::Allocations, Analyse::Summary, by: Array[Symbol], sort: Symbol, ?retained: bool, ?limit: Integer?,
      #:  ?warnings: Array[untyped], ?findings: Array[untyped]) -> void
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

      # The JSON text, without a newline at its end.
      #: () -> String
      def to_s
        JSON.generate({ "schema" => SCHEMA, "findings" => @findings, **totals, "by" => @by.map(&:to_s),
                        "sort" => @sort.to_s, "sites" => sites, **strings, **context })
      end

      private

      def totals
        site = Record::Site
        known({ "objects" => @allocations.objects, "bytes" => @allocations.total(:bytes),
                "old" => @allocations.total(:old), "freed" => @allocations.total(:freed),
                "retained" => @allocations.total(:retained), "retained_bytes" => @allocations.total(:retained_bytes),
                "vm_internal" => @allocations.special(site::VM), "pitwall" => @allocations.special(site::PITWALL),
                "allocated" => @allocations.allocated, "one_in" => @allocations.one_in.round(3),
                "looked_at" => @allocations.looked_at, "bursts" => @allocations.bursts,
                "gc_ns" => @allocations.gc_ns })
      end

      # The object with unknown values replaced by null.
      def known(object)
        unknown = [*(OF_ENDS unless @allocations.ends?), *("retained" unless @allocations.retained?),
                   *("retained_bytes" unless @allocations.retained_bytes?)]
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
        { "model" => { "gc_ns" => AllocationsText::MODEL }, "program" => @summary.programs.first,
          "elapsed_ns" => @summary.elapsed_ns, "ruby" => header&.ruby || {}, "host" => header&.host || {},
          "settings" => header&.settings || {}, "pids" => @summary.headers.map(&:pid),
          "losses" => @allocations.losses, "notes" => @summary.notes, "warnings" => @warnings }
      end
    end
  end
end
