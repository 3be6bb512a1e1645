# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Tags of YAML text: the program decides what an object with a tag is, and may decide otherwise in the next boot.
    # @api private
    class YamlTags
      # Where a tag can begin that is not harmless. Three kinds of "!" are left out, in files that libyaml can read:
      # - After a letter, a digit or "(" it belongs to plain text.
      # - Before a double quote it belongs to text.
      # - Before blanks and a scalar on the same line it belongs to text, or is the scalar's harmless tag "!".
      PERHAPS = /(?<![[:alnum:](])!(?!"| +["'[:alnum:]])/
      private_constant :PERHAPS

      # @param psych the module Psych
      # @param harmless tags of scalars that run no code of the program; "!" is one of them
      #: (Module, Array[String]) -> void
      def initialize(psych, harmless)
        @psych = psych
        @harmless = harmless
      end

      # Has the text a tag that is not harmless?
      # @return nil: it is not known
      #: (String) -> bool?
      def any?(text)
        return false unless text.include?("!")

        text = text.dup.force_encoding(Encoding::UTF_8)
        return if text.include?("\0") || !text.valid_encoding? # perhaps UTF-16
        return false unless text.match?(PERHAPS)

        found = handler.new(@harmless)
        @psych::Parser.new(found).parse(text.delete_prefix("\uFEFF"))
        found.any?
      rescue @psych::SyntaxError
        nil # in a document that the library does not read
      end

      private

      # It keeps nothing of the text, which is faster than psych's tree of nodes.
      def handler
        @handler ||= Class.new(@psych::Handler) do
          def initialize(harmless)
            super()
            @harmless = harmless
            @any = false
          end

          def any? = @any

          def scalar(_value, _anchor, tag, *) = (@any ||= !tag.nil? && !@harmless.include?(tag))

          def start_sequence(_anchor, tag, *) = (@any ||= !tag.nil?)

          def start_mapping(_anchor, tag, *) = (@any ||= !tag.nil?)
        end
      end
    end
  end
end
