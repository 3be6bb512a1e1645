# frozen_string_literal: true

module Pitwall
  module Bench
    # Gives every case a unique name, by which reports and recordings identify it.
    class NameList
      def initialize
        @taken = {}
      end

      # Labels are unique within a block of a file. A label that another block or file has taken gets the name of its
      # own block or file added: "join (block 2)". If that name is taken as well, it gets a number: "join (block 2, 2)".
      # @param file [String, nil] the cases' file, if there are several files
      #: (Array[Record::Case], ?String?) -> Array[Record::Case]
      def make_unique(cases, file = nil)
        cases.each do |kase|
          origin = file || (kase.block_name.empty? ? "block #{kase.block + 1}" : kase.block_name)
          kase.name = unique(kase.name, origin)
          @taken[kase.name] = true
        end
      end

      private

      def unique(name, origin)
        return name unless @taken.key?(name)
        return "#{name} (#{origin})" unless @taken.key?("#{name} (#{origin})")

        number = (2..).find { |count| !@taken.key?("#{name} (#{origin}, #{count})") }
        "#{name} (#{origin}, #{number})"
      end
    end
  end
end
