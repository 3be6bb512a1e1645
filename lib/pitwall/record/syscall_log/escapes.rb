# frozen_string_literal: true

module Pitwall
  module Record
    class SyscallLog
      # Undoes the escapes of tracers: \n, \", \\, \303 (octal), \x2f.
      # @api private
      module Escapes
        NAMED = { "n" => "\n", "t" => "\t", "r" => "\r", "v" => "\v", "f" => "\f", "a" => "\a", "b" => "\b",
                  "e" => "\e" }.freeze
        ESCAPE = /\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))/mn.freeze
        private_constant :NAMED, :ESCAPE

        module_function

        #: (String) -> String
        def undo(text)
          text.gsub(ESCAPE) do
            if $1 then $1.hex.chr
            elsif $2 then ($2.oct & 255).chr
            else NAMED.fetch($3, $3)
            end
          end
        end

        # The offset of the closing quote of a string that begins at `from`, behind its opening quote; nil where none
        # is.
        #: (String, Integer) -> Integer?
        def closing(text, from)
          at = text.index('"', from)
          while at && text.getbyte(at - 1) == 92
            slashes = 1
            slashes += 1 while at - 1 - slashes >= from && text.getbyte(at - 1 - slashes) == 92
            break if slashes.even? || at == from

            at = text.index('"', at + 1)
          end
          at
        end
      end
    end
  end
end
