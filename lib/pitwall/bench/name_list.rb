# frozen_string_literal: true

module Pitwall
  module Bench
    # Gives every case a name of its own: cases are known by it from here on.
    class NameList
      def initialize
        @taken = {}
      end

      # Labels are unique within a block of a file. The same one elsewhere gets what tells it apart, and a number where that is the same, too.
      # @param file [String, nil] what the cases are of, where there are several files
      #: (Array[Record::Case], ?String?) -> Array[Record::Case]
      def tell_apart(cases, file = nil)
        cases.each do |kase|
          more = file || (kase.block_name.empty? ? "block #{kase.block + 1}" : kase.block_name)
          kase.name = free(kase.name, more)
          @taken[kase.name] = true
        end
      end

      private

      def free(name, more)
        return name unless @taken.key?(name)
        return "#{name} (#{more})" unless @taken.key?("#{name} (#{more})")

        number = (2..).find { |count| !@taken.key?("#{name} (#{more}, #{count})") }
        "#{name} (#{more}, #{number})"
      end
    end
  end
end
