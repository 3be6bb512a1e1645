# frozen_string_literal: true

module Pitwall
  class Workspace
    # Trailers in the text of a commit message or of a note: `Key: value` lines at its end. git finds and adds them.
    # @api private
    class CommitMessage
      # Settings of git that a user may have changed: our trailers go to the end, and none replaces another.
      SETTINGS = %w[separators=: where=end ifexists=add ifmissing=add]
                 .flat_map { |setting| ["-c", "trailer.#{setting}"] }.freeze
      private_constant :SETTINGS

      # @param prefix what the keys of our trailers begin with
      #: (Git, prefix: String) -> void
      def initialize(git, prefix:)
        @git = git
        @prefix = prefix
      end

      # Our trailers of a message.
      # @return lines "Key: value"
      # Raises Git::Failed.
      #: (String) -> Array[String]
      def trailers(text)
        # The first paragraph of a text is a title, never trailers.
        found = @git.call(*SETTINGS, "interpret-trailers", "--parse", "--no-divider", input: "\n\n#{text.lstrip}")
        found.lines(chomp: true).select { |line| ours?(line) }
      end

      # The message with our trailers in place of the ones that it has.
      # @param pairs [Array<Array(String, String)>] keys and values; none removes the trailers
      # Raises Git::Failed.
      #: (String, Array[[String, String]]) -> String
      def with(text, pairs)
        bare = without(text)
        return bare if pairs.empty?

        trailers = pairs.flat_map { |pair| ["--trailer", pair.join(": ")] }
        @git.call(*SETTINGS, "interpret-trailers", "--no-divider", *trailers, input: bare)
      end

      private

      def ours?(line) = line.start_with?(@prefix)

      # Removes our trailers. Only lines that git takes for trailers are removed, so a message that quotes one keeps it.
      def without(text)
        ours = trailers(text)
        return text if ours.empty?

        lines = text.lines
        ours.reverse_each do |trailer|
          at = lines.rindex { |line| line.chomp == trailer }
          lines.delete_at(at) if at
        end
        lines.join
      end
    end
  end
end
