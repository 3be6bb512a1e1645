# frozen_string_literal: true

require "json"
require "zlib"
require "pitwall/show/measured/json_values"

module Pitwall
  module Show
    # What a page is given: one JSON object and columns of numbers, deflated, as Base64.
    #
    #   Base64(zlib(u32 LE bytes of JSON, JSON, columns one after the other))
    #
    # A column is unsigned BER ints, as in recordings; the object names it by [first byte, bytes].
    class PageData
      # @return [String] of the page
      attr_reader :title

      #: (title: String) -> void
      def initialize(title:)
        @title = title
        @columns = "".b
      end

      # @return [Hash{String => Object}] what the page is of; set before {#to_s}
      attr_accessor :object

      # @param packed [String] BER ints
      # @return [Array(Integer, Integer)] what the object calls it
      #: (String) -> [Integer, Integer]
      def packed(packed)
        place = [@columns.bytesize, packed.bytesize]
        @columns << packed
        place
      end

      # @param values [Array<Integer>] none negative
      #: (Array[Integer]) -> [Integer, Integer]
      def column(values) = packed(values.pack("w*"))

      #: () -> String
      def to_s
        json = JSON.generate(JsonValues.clean(@object)).b
        [Zlib.deflate([json.bytesize].pack("V") << json << @columns)].pack("m0")
      end
    end
  end
end
