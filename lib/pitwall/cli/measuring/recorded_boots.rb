# frozen_string_literal: true

require "json"
require "pitwall/analyse"
require "pitwall/cli/recording/project"
require "pitwall/errors"
require "pitwall/show"

module Pitwall
  module CLI
    # The part of `compare` that compares two recordings of `pitwall boot`.
    module RecordedBoots
      private

      # @raise [UsageError] only some of the recordings have loads
      def boots?(names, segments)
        booted = segments.flatten(1).map { |recording| recording.any?(&:boot?) }
        return false if booted.none?
        return refuse_mixed(names.flatten, booted) unless booted.all?

        option = %i[before after predicted labels weight view].find { |name| @options[name] }
        if option
          raise UsageError, "--#{option}: two boots are compared as they are: leave it out"
        elsif @options[:format] == "html"
          raise UsageError, "--format html: two boots are compared as text, json or markdown"
        end
        true
      end

      def refuse_mixed(names, booted)
        raise UsageError, "#{names[booted.index(true)]} holds a boot, and #{names[booted.index(false)]} does not: " \
                          "record both with pitwall boot -- CMD"
      end

      # @return [Integer] the exit status: figures of one boot each give no verdict
      def compare_boots(files, segments)
        boots = segments.map { |side| Analyse::Boot.new(side.flatten(1), origin: Project.origin) }
        view = Show::BootChangeView.new(Analyse::Boot::Change.new(*boots), base: files[0], side: files[1],
                                                                           location: Show::Location.new(Dir.pwd))
        publish(boots_report(view))
        Status::OK
      end

      def boots_report(view)
        case @options[:format]
        when "json"
          JSON.generate({ "schema" => "pitwall/compare-1", "results" => [], "warnings" => [], "boot" => view.json })
        when "markdown" then view.markdown
        else view.lines(**rendering.slice(:width, :palette)).join("\n")
        end
      end
    end
  end
end
