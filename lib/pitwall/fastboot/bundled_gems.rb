# frozen_string_literal: true

module Pitwall
  module Fastboot
    # The gems that Bundler.require is going to load. Before Bundler loads a gem, it asks the gem's dependency for
    # `autorequire`: an Array of files to require, or nil (the file has the gem's name). Bundler loads nothing if the
    # Array is empty.
    # @api private
    module BundledGems
      ASKER = %r{/bundler/runtime\.rb\z}
      ANSWERS = {}.compare_by_identity # Bundler::Dependency => a block
      private_constant :ASKER, :ANSWERS

      # Is prepended to Bundler::Dependency.
      module Asked
        def autorequire
          before = super
          block = ANSWERS[self] or return before
          asker = caller_locations(1, 1)&.first&.path
          asker&.match?(ASKER) ? block.call(before) : before
        end
      end
      private_constant :Asked

      module_function

      # @return [Bundler::Definition, nil] nil: Bundler has not read the Gemfile yet
      def definition
        ::Bundler.instance_variable_get(:@definition) if defined?(::Bundler) && Object.autoload?(:Bundler).nil?
      end

      # Answers for the gem when Bundler.require asks.
      # @param dependency [Bundler::Dependency]
      # @yieldparam before what the Gemfile says
      # @yieldreturn what to answer
      def answer(dependency, &block)
        ::Bundler::Dependency.prepend(Asked)
        ANSWERS[dependency] = block
      end
    end
  end
end
