# frozen_string_literal: true

module Pitwall
  module Analyse
    # Paths without "." and "..", by their text alone: no link is followed.
    module CleanPath
      # "/srv/app/../lib/./a.rb" → "/srv/lib/a.rb", "./a.rb" → "a.rb"
      #: (String) -> String
      def self.of(path)
        steps = path.split("/").each_with_object([]) do |step, found|
          step == ".." ? found.pop : found << step unless step.empty? || step == "."
        end
        "#{"/" if path.start_with?("/")}#{steps.join("/")}"
      end
    end
  end
end
