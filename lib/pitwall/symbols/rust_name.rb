# frozen_string_literal: true

module Pitwall
  module Symbols
    # Names of Rust's older mangling, without the hash at their end:
    # "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE" → "core::fmt::Formatter::pad"
    # @api private
    module RustName
      MANGLED = /\A_ZN(?<path>(?:\d+[\w$.]+)+)17h\h{16}E(?:\.llvm\.\h+)?(?<clone>\.[\w.]+)?\z/.freeze
      ESCAPES = { "SP" => "@", "BP" => "*", "RF" => "&", "LT" => "<", "GT" => ">", "LP" => "(", "RP" => ")",
                  "C" => "," }.freeze
      private_constant :MANGLED, :ESCAPES

      # nil: the name is none of these.
      #: (String) -> String?
      def self.demangle(name)
        match = MANGLED.match(name) or return
        parts = parts(match[:path]) or return
        parts.map { |part| readable(part) }.join("::")
      end

      # "4core3fmt" → ["core", "fmt"]; nil: the lengths do not fit.
      def self.parts(path)
        parts = []
        at = 0
        while at < path.size
          digits = path[at..][/\A\d{1,4}/] or return
          at += digits.size
          part = path[at, digits.to_i]
          return unless digits.to_i.positive? && part.size == digits.to_i

          parts << part
          at += part.size
        end
        parts
      end
      private_class_method :parts

      # "_$LT$T$u20$as$u20$core..fmt..Debug$GT$" → "<T as core::fmt::Debug>"
      def self.readable(part)
        part = part.delete_prefix("_") if part.start_with?("_$")
        part.gsub(/\$(?:(#{ESCAPES.keys.join("|")})|u(\h{1,6}))\$|\.\./) do |found|
          next "::" if found == ".."
          next ESCAPES.fetch(Regexp.last_match(1)) if Regexp.last_match(1)

          code = Regexp.last_match(2).hex
          code.between?(0x20, 0xd7ff) ? [code].pack("U") : found
        end
      end
      private_class_method :readable
    end
    private_constant :RustName
  end
end
