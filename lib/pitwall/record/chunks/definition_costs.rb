# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/header"

module Pitwall
  module Record
    # What a definition of a method on a module or class costs.
    #
    # name:     "Shop::Helpers"
    # kind:     "class" or "module"
    # reaches:  other modules and classes that have the methods
    # paths:    for each of these, the modules of its ancestry that bring the methods in; at least 1
    # entries:  places in their ancestries that Ruby visits at a definition
    # repeated: entries beyond the first in one ancestry
    # ns:       a definition, in ns; nil: not measured
    # not_measured: "frozen"
    # counters: the increase of the VM's counters a definition, by name
    DefinitionCost = Struct.new(:name, :kind, :reaches, :paths, :entries, :repeated, :ns, :not_measured, :counters,
                                keyword_init: true)

    module Chunks
      # CHDF: what definitions cost.
      class DefinitionCosts < Chunk
        type "CHDF"
        # @return [Array<DefinitionCost>]
        # @return [Integer, nil] ns of a definition on a module that nothing mixes in; nil: not measured
        offers :definition_costs, :alone_ns

        NUMBERS = %w[reaches paths entries repeated].freeze
        private_constant :NUMBERS

        def initialize(...)
          super
          @definition_costs = []
          @alone_ns = nil
        end

        #: (String, Integer) -> void
        def read(payload, _offset)
          object = Header.parse_object(payload)
          rows = object["modules"]
          raise Malformed, "lists no modules" unless rows.is_a?(Array) && object["alone_ns"].is_a?(Integer)

          @alone_ns = object["alone_ns"]
          @definition_costs = rows.map { |row| cost(row) }
        end

        private

        def cost(row)
          unless row.is_a?(Hash) && row["name"].is_a?(String) && NUMBERS.all? { |name| row[name].is_a?(Integer) }
            raise Malformed, "has a module without its figures"
          end

          ns, reason, counters = row.values_at("ns", "not_measured", "counters")
          DefinitionCost.new(**NUMBERS.to_h { |name| [name.to_sym, row[name]] }, name: row["name"],
                             kind: row["kind"].to_s, ns: (ns if ns.is_a?(Integer)),
                             not_measured: (reason if reason.is_a?(String)),
                             counters: counters.is_a?(Hash) ? counters.select { |_, one| one.is_a?(Numeric) } : {})
        end
      end
    end
  end
end
