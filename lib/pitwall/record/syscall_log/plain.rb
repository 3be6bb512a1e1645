# frozen_string_literal: true

module Pitwall
  module Record
    class SyscallLog
      # The study's form: the call's name, a tab, the path (which may hold more tabs). No results, times or processes, so a call is its name and
      # its path.
      # @api private
      class Plain
        NAME = /\A%?[A-Za-z_][A-Za-z0-9_$]{0,63}\z/n.freeze
        private_constant :NAME

        # How many lines have the form; a lone word is no evidence.
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
              yield BareSyscall.new(tab < line.bytesize ? line.byteslice(tab + 1, line.bytesize).freeze : nil, name)
            else
              refuse(line)
            end
          end
        end

        # Names and paths in turn.
        # @param kinds [Hash] name → what is yielded in its stead
        # @param learn [#call] what to yield for a name that is not there
        # @yield [kind, BareSyscall] the second has the path only; calls in a row on one path give the same
        def halves(halves, kinds, learn)
          path = call = nil
          at = -2
          size = halves.size - 2
          while at < size
            text = halves[at += 2]
            behind = halves[at + 1]
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
          @markers.zero? ? [] : ["holds markers such as #{@marker}: a log that was collapsed before; each counts as one call"]
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

        # Never among the names: each one counts.
        def marker(name)
          @marker ||= -name
          @markers += 1
          -name
        end
      end
    end
  end
end
