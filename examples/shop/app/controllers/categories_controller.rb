class CategoriesController < ApplicationController
  def index
    @bestsellers = Product.bestsellers.includes(:category).limit(6)
  end

  def show
    @category = Category.find_by!(slug: params[:slug])
    @products = @category.products.sorted(params[:sort]).page(params[:page])
  end
end
