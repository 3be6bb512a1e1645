# frozen_string_literal: true

module Pitwall
  module Record
    class SyscallLog
      # Lines of `call<TAB>path`. The path may contain more tabs. There are no results, times or processes.
      # @api private
      class Plain
        NAME = /\A%?[A-Za-z_][A-Za-z0-9_$]{0,63}\z/n.freeze
        private_constant :NAME

        # Number of lines that have the form. A word without a tab does not count.
        #: (Array[String]) -> Integer
        def self.fitting(lines) = lines.count { |line| line.match?(/\A%?[A-Za-z_][A-Za-z0-9_$]{0,63}\t/n) }

        attr_reader :unreadable, :first_unreadable

        def initialize
          @names = {}
          @unreadable = 0
          @markers = 0
        end

        def lines(lines)
          lines.each do |line|
            tab = line.index("\t") || line.bytesize
            text = line.byteslice(0, tab)
            if (name = @names[text] || named(text))
              path = line.byteslice(tab + 1, line.bytesize).freeze if tab < line.bytesize
              yield BareSyscall.new(path, name)
            else
              refuse(line)
            end
          end
        end

        # Reads names and paths in turn.
        # @param kinds [Hash] call's name → the value that is yielded for the name
        # @param learn [#call] gives the value for a name that `kinds` does not have
        # @yield [kind, BareSyscall] the call has no name; neighbouring calls with equal paths give the same object
        def fields(fields, kinds, learn)
          path = call = nil
          at = -2
          size = fields.size - 2
          while at < size
            text = fields[at += 2]
            behind = fields[at + 1]
            call = BareSyscall.new(path = behind.freeze) unless behind == path
            if (kind = kinds[text])
              yield kind, call
            elsif (name = named(text))
              yield learn.call(name), call
            else
              refuse("#{text}\t#{path}")
            end
          end
        end

        def finish; end

        def remarks
          return [] if @markers.zero?

          ["holds markers such as #{@marker}: a log that was collapsed before; each counts as one call"]
        end

        private

        def named(text)
          return nil unless NAME.match?(text)
          return marker(text) if text.getbyte(0) == 37

          @names.clear if @names.size > 1000
          @names[text] = -text
        end

        def refuse(line)
          return if line.empty? || line == "\r"

          @unreadable += 1
          @first_unreadable ||= line
        end

        # A name that begins with %. Not kept among the names, so that each marker is counted.
        def marker(name)
          @marker ||= -name
          @markers += 1
          -name
        end
      end
    end
  end
end
